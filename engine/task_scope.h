// Internal.
// Marks on this thread whose task is being started or resumed, and where the frame of its first coroutine goes.
// Nests: a handler may answer another connection's request from within its own turn.
#pragma once

#include "penstock/engine/arena.h"
#include "penstock/engine/task.h"

namespace penstock {

class TaskScope {
public:
    // `arena` serves the next coroutine frame only; nullptr: the heap.
    TaskScope(TaskOwner* owner, Arena* arena);
    ~TaskScope();
    TaskScope(const TaskScope&) = delete;
    TaskScope& operator=(const TaskScope&) = delete;

private:
    TaskOwner* const outer_owner_;
    Arena* const outer_arena_;
};

}  // namespace penstock
