"""`perf/run standard`: the written performance standard. Standard library only.

command     its command line, and what is done in which order
scenarios   what is asked for, how often and over how many connections, as data
answers     what has to come back, byte by byte
bench       servers and loads on their cores, one run after the other
loads       how several penstock_load share the connections of a scenario
resources   memory and context switches of a server, from /proc
records     a run as JSON
samples     summaries of runs: outliers, far values, spread
checks      what has to be true before and after, and whether it is
sources     what other commands have written, and of which commit
thresholds  the figures that are required
goals       those of speed, which are harder
capacity    where the 99th percentile leaves the floor's, and what follows from it
study       all that a report is made of
pages       the report as Markdown
tables      those in it
plots       its plots, as SVG
drawings    which of them there are
history     a small entry for each report
"""
