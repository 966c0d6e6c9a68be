#pragma once
#include <filesystem>

#include "satformer/io/file_descriptor.h"

namespace satformer {

// Holds `folder`, which must exist, against every other process that asks for it, until the descriptor is closed or the
// process ends, however it ends. Error when another one holds it. File systems without locks grant it always.
FileDescriptor lock_folder(const std::filesystem::path& folder);

}  // namespace satformer
