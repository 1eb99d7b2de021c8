/* Makes a power cut out of a kill: a library for LD_PRELOAD that keeps an undo log of every write that was not synced.
 *
 * Before a regular file under FORGET_DIR is changed, what it held there is appended to an undo log of that file in
 * FORGET_UNDO. When the file is synced, and the sync has returned, its log is emptied. After the process was killed, the
 * harness replays the logs backwards: the folder is then as a disk would be that kept nothing but what was synced.
 *
 * With FORGET_SYNC_DELAY_MS every sync of such a file takes that much longer: what a slow disk does, and a wide open window
 * for whoever acknowledges or shows before the sync has returned.
 *
 * While the file FORGET_FULL exists, the disk is full: a write to such a file that would make it longer fails with ENOSPC.
 *
 * Not covered, because SQLite in WAL mode does not rest on it: names (create, rename, unlink count as durable at once),
 * memory maps (the -shm file is rebuilt at every start and is ignored), copy_file_range and io_uring.
 *
 * An undo log: "UNDOLOG1", u32 length of the path, the path; then per change: u64 offset, u64 length of the file before,
 * u64 count, and that many old bytes. All in the byte order of the machine.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#define MAX_FD 65536

struct watched {
    dev_t device;
    ino_t inode;
    struct statx_timestamp born;
    int undo;
    off_t header;
    pthread_mutex_t lock;
    struct watched *next;
};

static pthread_mutex_t table_lock = PTHREAD_MUTEX_INITIALIZER;
static struct watched *all;
static struct watched *by_descriptor[MAX_FD];
static char watched_folder[PATH_MAX];
static char undo_folder[PATH_MAX];
static char full_marker[PATH_MAX];
static size_t folder_length;
static struct timespec sync_delay;
static int ready;

/* Going on without the log would make the harness believe that more survived than would have. */
static void give_up(const char *what) {
    char text[256];
    int length = snprintf(text, sizeof text, "forget_unsynced: %s: %s\n", what, strerror(errno));
    if (length > 0) syscall(SYS_write, 2, text, (size_t)length);
    abort();
}

__attribute__((constructor)) static void start(void) {
    const char *folder = getenv("FORGET_DIR");
    const char *undo = getenv("FORGET_UNDO");
    if (!folder || !undo) return;
    if (!realpath(folder, watched_folder)) give_up("FORGET_DIR");
    if (!realpath(undo, undo_folder)) give_up("FORGET_UNDO");
    folder_length = strlen(watched_folder);
    const char *full = getenv("FORGET_FULL");
    if (full) snprintf(full_marker, sizeof full_marker, "%s", full);
    const char *delay = getenv("FORGET_SYNC_DELAY_MS");
    long milliseconds = delay ? strtol(delay, NULL, 10) : 0;
    sync_delay.tv_sec = milliseconds / 1000;
    sync_delay.tv_nsec = milliseconds % 1000 * 1000000;
    ready = 1;
}

static void put(int file, const void *bytes, size_t count) {
    const char *from = bytes;
    while (count > 0) {
        long written = syscall(SYS_write, file, from, count);
        if (written < 0 && errno == EINTR) continue;
        if (written <= 0) give_up("writing the undo log");
        from += written;
        count -= (size_t)written;
    }
}

/* Numbers of deleted files are given out again (SQLite deletes its first journal right away), so a file is known by its
 * birth too. Where the file system does not tell, all births are equal. */
static struct statx_timestamp birth(int descriptor) {
    struct statx status;
    memset(&status, 0, sizeof status);
    if (syscall(SYS_statx, descriptor, "", AT_EMPTY_PATH, STATX_BTIME, &status) != 0 || !(status.stx_mask & STATX_BTIME))
        memset(&status.stx_btime, 0, sizeof status.stx_btime);
    return status.stx_btime;
}

static struct watched *begin_watching(int descriptor, const struct stat *status, const char *path) {
    struct watched *file;
    struct statx_timestamp born = birth(descriptor);
    for (file = all; file; file = file->next)
        if (file->device == status->st_dev && file->inode == status->st_ino && file->born.tv_sec == born.tv_sec &&
            file->born.tv_nsec == born.tv_nsec)
            return file;
    char name[PATH_MAX + 64];
    snprintf(name, sizeof name, "%s/%llu-%llu", undo_folder, (unsigned long long)status->st_dev,
             (unsigned long long)status->st_ino);
    file = calloc(1, sizeof *file);
    if (!file) give_up("memory");
    file->device = status->st_dev;
    file->inode = status->st_ino;
    file->born = born;
    pthread_mutex_init(&file->lock, NULL);
    file->undo = (int)syscall(SYS_openat, AT_FDCWD, name, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0600);
    if (file->undo < 0) give_up("opening the undo log");
    uint32_t length = (uint32_t)strlen(path);
    put(file->undo, "UNDOLOG1", 8);
    put(file->undo, &length, sizeof length);
    put(file->undo, path, length);
    file->header = 8 + (off_t)sizeof length + (off_t)length;
    file->next = all;
    all = file;
    return file;
}

static void opened(int descriptor) {
    if (!ready || descriptor < 0 || descriptor >= MAX_FD) return;
    int keep = errno;
    struct stat status;
    struct watched *file = NULL;
    pthread_mutex_lock(&table_lock);
    if (fstat(descriptor, &status) == 0 && S_ISREG(status.st_mode)) {
        char link[64], path[PATH_MAX];
        snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
        ssize_t length = readlink(link, path, sizeof path - 1);
        if (length > 0) {
            path[length] = 0;
            int inside = strncmp(path, watched_folder, folder_length) == 0 && path[folder_length] == '/';
            int shared_memory = length > 4 && strcmp(path + length - 4, "-shm") == 0;
            if (inside && !shared_memory) file = begin_watching(descriptor, &status, path);
        }
    }
    by_descriptor[descriptor] = file;
    pthread_mutex_unlock(&table_lock);
    errno = keep;
}

/* Returns the file with its lock held, or NULL. The inode is compared because a descriptor may have been closed and used
 * again behind our back. */
static struct watched *lock_file(int descriptor, struct stat *status) {
    if (!ready || descriptor < 0 || descriptor >= MAX_FD) return NULL;
    struct watched *file = by_descriptor[descriptor];
    if (!file) return NULL;
    int keep = errno;
    pthread_mutex_lock(&file->lock);
    if (fstat(descriptor, status) != 0 || status->st_ino != file->inode || status->st_dev != file->device) {
        pthread_mutex_unlock(&file->lock);
        file = NULL;
    }
    errno = keep;
    return file;
}

static void unlock_file(struct watched *file) {
    if (file) pthread_mutex_unlock(&file->lock);
}

/* One record, written whole before the change itself: a torn record at the end means that its change never happened. */
static void remember(struct watched *file, int descriptor, const struct stat *status, off_t offset, off_t count) {
    int keep = errno;
    off_t old_length = status->st_size;
    off_t overlap = 0;
    if (offset < old_length) overlap = count < old_length - offset ? count : old_length - offset;
    uint64_t head[3] = {(uint64_t)offset, (uint64_t)old_length, (uint64_t)overlap};
    char *record = malloc(sizeof head + (size_t)overlap);
    if (!record) give_up("memory");
    memcpy(record, head, sizeof head);
    /* A descriptor may be open for writing only, so the old bytes are read through one of our own. */
    int reader = descriptor;
    char link[64];
    if (overlap > 0 && (fcntl(descriptor, F_GETFL) & O_ACCMODE) == O_WRONLY) {
        snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
        reader = (int)syscall(SYS_openat, AT_FDCWD, link, O_RDONLY | O_CLOEXEC, 0);
        if (reader < 0) give_up("opening to read old bytes");
    }
    off_t done = 0;
    while (done < overlap) {
        long got = syscall(SYS_pread64, reader, record + sizeof head + done, (size_t)(overlap - done), offset + done);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) give_up("reading old bytes");
        done += got;
    }
    if (reader != descriptor) syscall(SYS_close, reader);
    put(file->undo, record, sizeof head + (size_t)overlap);
    free(record);
    errno = keep;
}

/* Whether the disk has no space for a change up to this length of the file; then errno is set. */
static int is_full(const struct stat *status, off_t end) {
    if (!full_marker[0] || end <= status->st_size) return 0;
    int keep = errno;
    int exists = syscall(SYS_faccessat, AT_FDCWD, full_marker, F_OK) == 0;
    errno = exists ? ENOSPC : keep;
    return exists;
}

static off_t cursor(int descriptor, const struct stat *status) {
    return fcntl(descriptor, F_GETFL) & O_APPEND ? status->st_size : lseek(descriptor, 0, SEEK_CUR);
}

static void remember_at_cursor(struct watched *file, int descriptor, const struct stat *status, size_t count) {
    off_t offset = cursor(descriptor, status);
    if (offset >= 0) remember(file, descriptor, status, offset, (off_t)count);
}

static size_t total(const struct iovec *parts, int count) {
    size_t sum = 0;
    for (int i = 0; i < count; i++) sum += parts[i].iov_len;
    return sum;
}

static int truncate_to(int descriptor, off_t length) {
    struct stat status;
    struct watched *file = lock_file(descriptor, &status);
    if (file) {
        off_t cut = length < status.st_size ? status.st_size - length : 0;
        remember(file, descriptor, &status, length, cut);
    }
    long result = syscall(SYS_ftruncate, descriptor, length);
    unlock_file(file);
    return (int)result;
}

/* O_TRUNC would destroy what the log has to keep, so it is done as a step of its own. */
static int open_at(int folder, const char *path, int flags, mode_t mode) {
    int truncates = ready && (flags & O_TRUNC) && (flags & O_ACCMODE) != O_RDONLY;
    int descriptor = (int)syscall(SYS_openat, folder, path, truncates ? flags & ~O_TRUNC : flags, mode);
    if (descriptor < 0) return descriptor;
    opened(descriptor);
    if (truncates) {
        struct stat status;
        if (fstat(descriptor, &status) == 0 && S_ISREG(status.st_mode) && status.st_size > 0)
            truncate_to(descriptor, 0);
    }
    return descriptor;
}

static mode_t mode_of(int flags, va_list arguments) {
    return (flags & O_CREAT) || (flags & O_TMPFILE) == O_TMPFILE ? va_arg(arguments, mode_t) : 0;
}

#define OPEN(name)                                            \
    int name(const char *path, int flags, ...) {              \
        va_list arguments;                                    \
        va_start(arguments, flags);                           \
        mode_t mode = mode_of(flags, arguments);              \
        va_end(arguments);                                    \
        return open_at(AT_FDCWD, path, flags, mode);          \
    }
#define OPENAT(name)                                          \
    int name(int folder, const char *path, int flags, ...) {  \
        va_list arguments;                                    \
        va_start(arguments, flags);                           \
        mode_t mode = mode_of(flags, arguments);              \
        va_end(arguments);                                    \
        return open_at(folder, path, flags, mode);            \
    }

OPEN(open)
OPEN(open64)
OPENAT(openat)
OPENAT(openat64)

int creat(const char *path, mode_t mode) { return open_at(AT_FDCWD, path, O_WRONLY | O_CREAT | O_TRUNC, mode); }
int creat64(const char *path, mode_t mode) { return open_at(AT_FDCWD, path, O_WRONLY | O_CREAT | O_TRUNC, mode); }

int close(int descriptor) {
    if (ready && descriptor >= 0 && descriptor < MAX_FD) {
        pthread_mutex_lock(&table_lock);
        by_descriptor[descriptor] = NULL;
        pthread_mutex_unlock(&table_lock);
    }
    return (int)syscall(SYS_close, descriptor);
}

ssize_t write(int descriptor, const void *bytes, size_t count) {
    struct stat status;
    struct watched *file = lock_file(descriptor, &status);
    if (file && is_full(&status, cursor(descriptor, &status) + (off_t)count)) {
        unlock_file(file);
        return -1;
    }
    if (file) remember_at_cursor(file, descriptor, &status, count);
    long result = syscall(SYS_write, descriptor, bytes, count);
    unlock_file(file);
    return result;
}

ssize_t writev(int descriptor, const struct iovec *parts, int count) {
    struct stat status;
    struct watched *file = lock_file(descriptor, &status);
    if (file && is_full(&status, cursor(descriptor, &status) + (off_t)total(parts, count))) {
        unlock_file(file);
        return -1;
    }
    if (file) remember_at_cursor(file, descriptor, &status, total(parts, count));
    long result = syscall(SYS_writev, descriptor, parts, count);
    unlock_file(file);
    return result;
}

static ssize_t write_at(int descriptor, const void *bytes, size_t count, off_t offset) {
    struct stat status;
    struct watched *file = lock_file(descriptor, &status);
    if (file && is_full(&status, offset + (off_t)count)) {
        unlock_file(file);
        return -1;
    }
    if (file) remember(file, descriptor, &status, offset, (off_t)count);
    long result = syscall(SYS_pwrite64, descriptor, bytes, count, offset);
    unlock_file(file);
    return result;
}

ssize_t pwrite(int descriptor, const void *bytes, size_t count, off_t offset) {
    return write_at(descriptor, bytes, count, offset);
}
ssize_t pwrite64(int descriptor, const void *bytes, size_t count, off64_t offset) {
    return write_at(descriptor, bytes, count, offset);
}

static ssize_t write_parts_at(int descriptor, const struct iovec *parts, int count, off_t offset) {
    struct stat status;
    struct watched *file = lock_file(descriptor, &status);
    if (file && is_full(&status, offset + (off_t)total(parts, count))) {
        unlock_file(file);
        return -1;
    }
    if (file) remember(file, descriptor, &status, offset, (off_t)total(parts, count));
    long result = syscall(SYS_pwritev, descriptor, parts, count, offset, 0);
    unlock_file(file);
    return result;
}

ssize_t pwritev(int descriptor, const struct iovec *parts, int count, off_t offset) {
    return write_parts_at(descriptor, parts, count, offset);
}
ssize_t pwritev64(int descriptor, const struct iovec *parts, int count, off64_t offset) {
    return write_parts_at(descriptor, parts, count, offset);
}

int ftruncate(int descriptor, off_t length) { return truncate_to(descriptor, length); }
int ftruncate64(int descriptor, off64_t length) { return truncate_to(descriptor, length); }

static int allocate(int descriptor, int mode, off_t offset, off_t length) {
    struct stat status;
    struct watched *file = lock_file(descriptor, &status);
    if (file) remember(file, descriptor, &status, offset, mode == 0 || mode == FALLOC_FL_KEEP_SIZE ? 0 : length);
    long result = syscall(SYS_fallocate, descriptor, mode, offset, length);
    unlock_file(file);
    return (int)result;
}

int fallocate(int descriptor, int mode, off_t offset, off_t length) { return allocate(descriptor, mode, offset, length); }
int fallocate64(int descriptor, int mode, off64_t offset, off64_t length) {
    return allocate(descriptor, mode, offset, length);
}
/* These two return the error instead of setting errno. */
int posix_fallocate(int descriptor, off_t offset, off_t length) {
    return allocate(descriptor, 0, offset, length) == 0 ? 0 : errno;
}
int posix_fallocate64(int descriptor, off64_t offset, off64_t length) {
    return allocate(descriptor, 0, offset, length) == 0 ? 0 : errno;
}

/* The log is emptied only after the sync returned: killed in between, the write is forgotten, which a real disk may do
 * too, since nobody was told that it is safe. */
static int sync_with(int descriptor, long call) {
    struct stat status;
    struct watched *file = lock_file(descriptor, &status);
    if (file) nanosleep(&sync_delay, NULL);
    long result = syscall(call, descriptor);
    if (file && result == 0 && syscall(SYS_ftruncate, file->undo, file->header) != 0) give_up("emptying the undo log");
    unlock_file(file);
    return (int)result;
}

int fsync(int descriptor) { return sync_with(descriptor, SYS_fsync); }
int fdatasync(int descriptor) { return sync_with(descriptor, SYS_fdatasync); }
