"""What `perf/run` is made of. Standard library only.

command_line  the sub-commands, and how all of them end
static        the sub-command that measures files
same_core     the sub-command `peers`, which measures small answers
compare       the sub-command that measures two commits beside each other
judgement     whether one of them is slower; knows nothing of how they were measured
commits       another commit, built as this one was
soak          the sub-command for minutes and hours, and what becomes of its samples
soak_load     the clients of a soak
footprint     the sub-command for memory, and the size of the program
cold_start    the sub-command for the time from exec to the first answer
at_hand       the servers that these two look at
standard      a package of its own: the sub-command that measures by the written standard
arguments     what their command lines have in common
peers         which servers of files are compared, as data
http_peers    and which of small answers
servers       starting a server, its CPU time, ending it
load          wrk, and what it prints
own_load      penstock_load, one or several in step, and what they print
histogram     latencies in buckets: adding them up, and quantiles
rounds        servers in turn, and whether a round was undisturbed
calls         system calls per request, as strace counts them
machine       cores, and how busy and how fast they are
site          the files that are served, and whether a server answers with them
report        medians, ratios and tables; knows nothing of how they were measured
tools         programs that have to be there
"""
