// Internal.
// A timer that calls a function: for listeners that rest, sleeping tasks, and other things that are not
// connections. Belongs to whoever embeds it; destroying one that is set is a fault that its owner prevents by
// `Reactor::cancel`.
#pragma once

#include "penstock/engine/timer_wheel.h"

namespace penstock {

struct Alarm : TimerNode {
    void (*ring)(void* context) = nullptr;
    void* context = nullptr;
};

}  // namespace penstock
