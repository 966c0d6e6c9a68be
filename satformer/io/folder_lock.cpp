#include "satformer/io/folder_lock.h"

#include <fcntl.h>
#include <sys/file.h>

#include "satformer/core/error.h"

namespace satformer {

FileDescriptor lock_folder(const std::filesystem::path& folder) {
  FileDescriptor descriptor(folder, O_RDONLY | O_DIRECTORY, "lock");
  const bool held = ::flock(descriptor.get(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
  require(!held, "{}: another process is writing this run", folder.string());
  return descriptor;
}

}  // namespace satformer
