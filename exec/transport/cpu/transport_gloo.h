// A communicator as a Gloo process group of c10d.
#pragma once

#include <memory>
#include <string>

#include "exec/process/store.h"
#include "exec/transport/transport.h"

namespace slipway::exec {

// Like connect_transport (exec/transport/device.h). The network interface is GLOO_SOCKET_IFNAME, else loopback when the
// store is on loopback, else that of the host name's address.
std::unique_ptr<Transport> connect_gloo(const StoreHost& store, const Group& group, int rank,
                                        const std::string& store_host);

}  // namespace slipway::exec
