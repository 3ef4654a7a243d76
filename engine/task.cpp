#include "penstock/engine/task.h"

#include <new>

#include "penstock/engine/task_scope.h"

namespace penstock {

namespace {

thread_local TaskOwner* t_owner = nullptr;
thread_local Arena* t_frame_arena = nullptr;

// Stands in front of each frame and says where it came from; keeps the frame's alignment.
struct alignas(std::max_align_t) FramePrefix {
    bool from_heap;
};

}  // namespace

namespace task_detail {

void* allocate_frame(std::size_t bytes) noexcept {
    Arena* const arena = std::exchange(t_frame_arena, nullptr);
    void* memory = arena != nullptr ? arena->try_allocate(sizeof(FramePrefix) + bytes) : nullptr;
    const bool from_heap = memory == nullptr;
    if (from_heap) {
        memory = ::operator new(sizeof(FramePrefix) + bytes, std::nothrow);
    }
    if (memory == nullptr) {
        return nullptr;
    }
    auto* const prefix = ::new (memory) FramePrefix{from_heap};
    return prefix + 1;
}

void free_frame(void* frame) noexcept {
    auto* const prefix = static_cast<FramePrefix*>(frame) - 1;
    if (prefix->from_heap) {
        ::operator delete(prefix);
    }
}

TaskOwner* current_owner() noexcept { return t_owner; }

}  // namespace task_detail

TaskScope::TaskScope(TaskOwner* owner, Arena* arena) : outer_owner_(t_owner), outer_arena_(t_frame_arena) {
    t_owner = owner;
    t_frame_arena = arena;
}

TaskScope::~TaskScope() {
    t_owner = outer_owner_;
    t_frame_arena = outer_arena_;
}

}  // namespace penstock
