/* A passthrough filesystem on libfuse 3's high-level API, as a C programmer would write it first: what the mount is
 * compared with. Shows the folder that is its first argument on the mount point that is its second, for reading.
 *
 *     gcc -O2 passthrough.c -o passthrough $(pkg-config fuse3 --cflags --libs)
 *     ./passthrough FOLDER MOUNTPOINT -f
 */
#define FUSE_USE_VERSION 31
#define _GNU_SOURCE

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fuse.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int root;

/* A path of the mount as one below the folder. */
static const char *below(const char *path)
{
    return path[1] ? path + 1 : ".";
}

static int pass_getattr(const char *path, struct stat *found, struct fuse_file_info *info)
{
    int done = info ? fstat((int)info->fh, found) : fstatat(root, below(path), found, AT_SYMLINK_NOFOLLOW);
    return done ? -errno : 0;
}

static int pass_readlink(const char *path, char *target, size_t size)
{
    ssize_t length = readlinkat(root, below(path), target, size - 1);
    if (length < 0)
        return -errno;
    target[length] = 0;
    return 0;
}

static int pass_opendir(const char *path, struct fuse_file_info *info)
{
    int fd = openat(root, below(path), O_RDONLY | O_DIRECTORY);
    DIR *folder = fd < 0 ? NULL : fdopendir(fd);
    if (!folder)
        return -errno;
    info->fh = (uint64_t)(uintptr_t)folder;
    return 0;
}

static int pass_readdir(const char *path, void *buffer, fuse_fill_dir_t fill, off_t offset, struct fuse_file_info *info,
                        enum fuse_readdir_flags flags)
{
    (void)path, (void)offset, (void)flags;
    DIR *folder = (DIR *)(uintptr_t)info->fh;
    struct dirent *entry;
    rewinddir(folder);
    while ((entry = readdir(folder))) {
        struct stat found = {.st_ino = entry->d_ino, .st_mode = (mode_t)entry->d_type << 12};
        if (fill(buffer, entry->d_name, &found, 0, 0))
            break;
    }
    return 0;
}

static int pass_releasedir(const char *path, struct fuse_file_info *info)
{
    (void)path;
    closedir((DIR *)(uintptr_t)info->fh);
    return 0;
}

static int pass_open(const char *path, struct fuse_file_info *info)
{
    int fd = openat(root, below(path), info->flags);
    if (fd < 0)
        return -errno;
    info->fh = (uint64_t)fd;
    return 0;
}

static int pass_read(const char *path, char *buffer, size_t size, off_t offset, struct fuse_file_info *info)
{
    (void)path;
    ssize_t length = pread((int)info->fh, buffer, size, offset);
    return length < 0 ? -errno : (int)length;
}

static int pass_release(const char *path, struct fuse_file_info *info)
{
    (void)path;
    close((int)info->fh);
    return 0;
}

static const struct fuse_operations operations = {
    .getattr = pass_getattr, .readlink = pass_readlink, .opendir = pass_opendir, .readdir = pass_readdir,
    .releasedir = pass_releasedir, .open = pass_open, .read = pass_read, .release = pass_release,
};

int main(int count, char **words)
{
    if (count < 3 || (root = open(words[1], O_RDONLY | O_DIRECTORY)) < 0) {
        fprintf(stderr, "usage: %s FOLDER MOUNTPOINT [OPTIONS]\n", words[0]);
        return 1;
    }
    words[1] = words[0];
    return fuse_main(count - 1, words + 1, &operations, NULL);
}
