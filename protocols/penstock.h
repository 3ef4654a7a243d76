// Public.
// Everything that a program needs to serve HTTP.
#pragma once

#include "penstock/engine/awaitables.h"
#include "penstock/engine/config.h"
#include "penstock/engine/metrics.h"
#include "penstock/engine/server.h"
#include "penstock/engine/task.h"
#include "penstock/protocols/http/cookies.h"
#include "penstock/protocols/http/deferred_response.h"
#include "penstock/protocols/http/event_stream.h"
#include "penstock/protocols/http/forms.h"
#include "penstock/protocols/http/middleware.h"
#include "penstock/protocols/http/multipart.h"
#include "penstock/protocols/http/request.h"
#include "penstock/protocols/http/response.h"
#include "penstock/protocols/http/router.h"
#include "penstock/protocols/http/service.h"
#include "penstock/protocols/http/static_files.h"
#include "penstock/protocols/http/tables.h"
#include "penstock/protocols/http/uploaded_file.h"
