/* SPDX-License-Identifier: Apache-2.0 */
/* Channels and what is said over them: folders, who is at the other end, and messages that are not what they should be. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>

#include "folder.h"
#include "os/channel.h"
#include "stream/control.h"
#include "stream/record.h"

#define HEADER offsetof(struct sf_control, text)

static char folder[64];

static int make_folder(void **state)
{
	(void)state;
	snprintf(folder, sizeof(folder), "/tmp/test_channel.XXXXXX");
	return mkdtemp(folder) && setenv("XDG_RUNTIME_DIR", folder, 1) == 0 ? 0 : -1;
}

static int remove_folder(void **state)
{
	(void)state;
	return folder_remove(folder);
}

static int count_descriptors(void)
{
	DIR *dir = opendir("/proc/self/fd");
	int n = 0;

	while (readdir(dir))
		n++;
	closedir(dir);
	return n;
}

/* Two ends of a channel, through a listener as in life. */
static void make_pair(int ends[2])
{
	struct sf_error err = { 0 };
	char path[SF_CHANNEL_PATH];
	int listener;

	assert_true(sf_channel_collector_path(getpid(), false, path, &err));
	listener = sf_channel_listen(path, &err);
	assert_true(listener >= 0);
	ends[0] = sf_channel_connect(path, &err);
	assert_true(ends[0] >= 0);
	ends[1] = sf_channel_accept(listener, &err);
	assert_true(ends[1] >= 0);
	close(listener);
	unlink(path);
}

static bool is_there(const char *path)
{
	struct stat about;

	return lstat(path, &about) == 0;
}

static void make_old(const char *path, time_t age)
{
	const struct timespec then = { .tv_sec = time(NULL) - age }, times[2] = { then, then };

	assert_int_equal(utimensat(AT_FDCWD, path, times, AT_SYMLINK_NOFOLLOW), 0);
}

/* A socket at folder/stillframe/NAME, so many seconds old, with somebody who listens or nobody. */
static int leave(char path[SF_CHANNEL_PATH], const char *name, time_t age, bool listens)
{
	struct sf_error err = { 0 };
	int fd;

	snprintf(path, SF_CHANNEL_PATH, "%s/stillframe/%s", folder, name);
	fd = sf_channel_listen(path, &err);
	assert_true(fd >= 0);
	make_old(path, age);
	if (listens)
		return fd;
	close(fd);
	return -1;
}

static void sockets_of_the_dead_are_swept(void **state)
{
	char dead[SF_CHANNEL_PATH], young[SF_CHANNEL_PATH], alive[SF_CHANNEL_PATH];
	char own[SF_CHANNEL_PATH], file[SF_CHANNEL_PATH + 8];
	int fd;
	(void)state;

	assert_true(sf_channel_collector_path(getpid(), false, own, NULL)); /* makes the folder */
	leave(dead, "agent-1.sock", 100, false);
	leave(young, "agent-2.sock", 0, false);
	fd = leave(alive, "agent-3.sock", 100, true);
	snprintf(file, sizeof(file), "%s/stillframe/agent-4.sock", folder);
	close(open(file, O_CREAT | O_WRONLY, 0600));
	make_old(file, 100);
	sf_channel_sweep();
	assert_false(is_there(dead));
	assert_true(is_there(young));
	assert_true(is_there(alive));
	assert_true(is_there(file));
	close(fd);
	assert_int_equal(unlink(young) | unlink(alive) | unlink(file), 0);
}

static void close_pair(int ends[2])
{
	close(ends[0]);
	close(ends[1]);
}

static void messages_arrive_whole(void **state)
{
	struct sf_control got;
	struct sf_error err = { 0 };
	int ends[2], fd, null = open("/dev/null", O_RDONLY | O_CLOEXEC);
	int32_t pid;
	(void)state;

	make_pair(ends);
	assert_true(sf_control_send(ends[0], SF_CONTROL_START, "rate=199hz,clock=cpu", -1, &err));
	assert_true(sf_control_send(ends[0], SF_CONTROL_READY, NULL, null, &err));
	assert_int_equal(sf_control_receive(ends[1], &got, &fd, 1000, &err), 1);
	assert_int_equal(got.kind, SF_CONTROL_START);
	assert_string_equal(got.text, "rate=199hz,clock=cpu");
	assert_int_equal(got.pid, getpid());
	assert_int_equal(fd, -1);
	assert_int_equal(sf_control_receive(ends[1], &got, &fd, 1000, &err), 1);
	assert_int_equal(got.kind, SF_CONTROL_READY);
	assert_string_equal(got.text, "");
	assert_true(fd >= 0 && fd != null);
	assert_int_equal(fcntl(fd, F_GETFD), FD_CLOEXEC);
	assert_true(sf_channel_peer(ends[1], &pid) && pid == getpid());
	close(fd);
	close(null);
	close(ends[0]);
	assert_int_equal(sf_control_receive(ends[1], &got, &fd, 1000, &err), 0);
	close(ends[1]);
}

static void waiting_ends(void **state)
{
	struct sf_control got;
	struct sf_error err = { 0 };
	int ends[2], fd;
	(void)state;

	make_pair(ends);
	assert_int_equal(sf_control_receive(ends[1], &got, &fd, 20, &err), -1);
	assert_int_equal(err.os_errno, ETIMEDOUT);
	assert_int_equal(fcntl(ends[0], F_GETFD), FD_CLOEXEC);
	assert_int_equal(fcntl(ends[1], F_GETFD), FD_CLOEXEC);
	close_pair(ends);
}

/* A message that passes, for spoiling. */
static struct sf_control good(const char *text)
{
	struct sf_control message = {
		.magic = SF_CONTROL_MAGIC,
		.version = SF_STREAM_VERSION,
		.kind = SF_CONTROL_DONE,
		.size = (uint32_t)strlen(text),
	};

	strcpy(message.text, text);
	return message;
}

static void refuses(const void *bytes, size_t size)
{
	struct sf_error err = { 0 };
	struct sf_control got;
	int ends[2], fd;

	make_pair(ends);
	assert_int_equal(send(ends[0], bytes, size, 0), (int)size);
	assert_int_equal(sf_control_receive(ends[1], &got, &fd, 1000, &err), -1);
	assert_int_equal(fd, -1);
	assert_true(err.text[0]);
	close_pair(ends);
}

static void damaged_messages_are_refused(void **state)
{
	struct sf_control message = good("hello");
	char large[SF_CHANNEL_MAX] = { 0 };
	(void)state;

	refuses("x", 1);
	refuses(&message, HEADER - 1);
	refuses(&message, HEADER + 4);
	refuses(&message, HEADER + 6);
	message.magic++;
	refuses(&message, HEADER + 5);
	message = good("hello");
	message.version++;
	refuses(&message, HEADER + 5);
	message = good("hello");
	message.kind = 0;
	refuses(&message, HEADER + 5);
	message.kind = SF_CONTROL_DONE + 1;
	refuses(&message, HEADER + 5);
	message = good("hello");
	message.text[2] = 0; /* two texts in one */
	refuses(&message, HEADER + 5);
	message = good("hello");
	memset(message.text, 'x', SF_CONTROL_TEXT);
	message.size = SF_CONTROL_TEXT; /* no room for the zero */
	refuses(&message, sizeof(message));
	message.size = UINT32_MAX;
	refuses(&message, sizeof(message));
	message.size = SF_CONTROL_TEXT + 1;
	memcpy(large, &message, sizeof(message));
	refuses(large, sizeof(message) + 1);
	refuses(large, sizeof(large));
}

static void too_long_texts_are_not_sent(void **state)
{
	char text[SF_CONTROL_TEXT + 1];
	struct sf_error err = { 0 };
	int ends[2];
	(void)state;

	make_pair(ends);
	memset(text, 'x', sizeof(text) - 1);
	text[SF_CONTROL_TEXT] = 0;
	assert_false(sf_control_send(ends[0], SF_CONTROL_START, text, -1, &err));
	text[SF_CONTROL_TEXT - 1] = 0;
	assert_true(sf_control_send(ends[0], SF_CONTROL_START, text, -1, &err));
	close_pair(ends);
}

static void send_descriptors(int channel, const void *bytes, size_t size, int fd, int n)
{
	union {
		struct cmsghdr header;
		char room[CMSG_SPACE(64 * sizeof(int))];
	} control = { .room = { 0 } };
	struct iovec piece = { (void *)(uintptr_t)bytes, size };
	struct msghdr message = { .msg_iov = &piece, .msg_iovlen = 1, .msg_control = control.room,
				  .msg_controllen = CMSG_SPACE((size_t)n * sizeof(int)) };

	control.header.cmsg_level = SOL_SOCKET;
	control.header.cmsg_type = SCM_RIGHTS;
	control.header.cmsg_len = CMSG_LEN((size_t)n * sizeof(int));
	for (int i = 0; i < n; i++)
		memcpy(CMSG_DATA(&control.header) + (size_t)i * sizeof(int), &fd, sizeof(fd));
	assert_int_equal(sendmsg(channel, &message, 0), (int)size);
}

/* Descriptors that nobody asked for are closed, however many, and with whatever message they came. */
static void unwanted_descriptors_are_closed(void **state)
{
	struct sf_control message = good("hello"), got;
	struct sf_error err = { 0 };
	int ends[2], fd, before = count_descriptors();
	(void)state;

	make_pair(ends);
	send_descriptors(ends[0], &message, HEADER + 5, ends[0], 1); /* with a DONE */
	assert_int_equal(sf_control_receive(ends[1], &got, &fd, 1000, &err), -1);
	message.kind = SF_CONTROL_READY;
	for (int n = 2; n <= 64; n *= 2) {
		send_descriptors(ends[0], &message, HEADER + 5, ends[0], n);
		assert_int_equal(sf_control_receive(ends[1], &got, &fd, 1000, &err), -1);
		assert_int_equal(fd, -1);
	}
	send_descriptors(ends[0], &message, HEADER + 5, ends[0], 1);
	assert_int_equal(sf_control_receive(ends[1], &got, NULL, 1000, &err), 1);
	send_descriptors(ends[0], &message, HEADER, ends[0], 1); /* and with a damaged one */
	assert_int_equal(sf_control_receive(ends[1], &got, &fd, 1000, &err), -1);
	close_pair(ends);
	assert_int_equal(count_descriptors(), before);
}

static void sockets_of_the_dead_are_replaced(void **state)
{
	struct sf_error err = { 0 };
	char path[SF_CHANNEL_PATH];
	struct stat about;
	int old, new;
	(void)state;

	assert_true(sf_channel_agent_path(getpid(), path, &err));
	old = sf_channel_listen(path, &err);
	assert_true(old >= 0);
	assert_int_equal(stat(path, &about), 0);
	assert_int_equal(about.st_mode & 07777, 0600);
	assert_int_equal(sf_channel_listen(path, &err), -1); /* it is alive */
	close(old);
	assert_int_equal(sf_channel_connect(path, &err), -1);
	new = sf_channel_listen(path, &err);
	assert_true(new >= 0);
	assert_int_equal(sf_channel_accept(new, &err), -1);
	assert_int_equal(err.code, SF_E_NONE);
	close(new);
	unlink(path);
}

static void other_files_are_left_alone(void **state)
{
	struct sf_error err = { 0 };
	char path[SF_CHANNEL_PATH];
	struct stat about;
	(void)state;

	assert_true(sf_channel_agent_path(getpid(), path, &err));
	close(open(path, O_CREAT | O_WRONLY, 0600));
	assert_int_equal(sf_channel_connect(path, &err), -1);
	sf_channel_listen(path, &err);
	assert_int_equal(stat(path, &about), 0);
	unlink(path);
}

static void folders_of_others_are_not_used(void **state)
{
	struct sf_error err = { 0 };
	char path[SF_CHANNEL_PATH], ours[128];
	(void)state;

	snprintf(ours, sizeof(ours), "%s/stillframe", folder);
	assert_true(sf_channel_agent_path(getpid(), path, &err));
	assert_int_equal(chmod(ours, 0770), 0);
	assert_false(sf_channel_agent_path(getpid(), path, &err));
	assert_int_equal(sf_channel_listen(path, &err), -1);
	assert_int_equal(chmod(ours, 0700), 0);
	if (geteuid() == 0) {
		assert_int_equal(chown(ours, 65534, 65534), 0);
		assert_false(sf_channel_agent_path(getpid(), path, &err));
		assert_int_equal(sf_channel_listen(path, &err), -1);
	}
	assert_int_equal(rmdir(ours), 0);
	assert_int_equal(symlink("/", ours), 0);
	assert_false(sf_channel_agent_path(getpid(), path, &err));
	assert_int_equal(unlink(ours), 0);
}

/* As nobody: calls a socket to which the file system would let it through. */
static int call_as_nobody(const char *path)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int status, pid = fork();

	if (pid == 0) {
		int fd = socket(AF_UNIX, SOCK_SEQPACKET, 0);
		char byte;

		strcpy(address.sun_path, path);
		if (setgid(65534) != 0 || setuid(65534) != 0)
			_exit(2);
		if (connect(fd, (struct sockaddr *)&address, sizeof(address)) != 0)
			_exit(3);
		_exit(recv(fd, &byte, 1, 0) == 0 ? 0 : 4); /* turned away */
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* The folder keeps others out; should it be open, SO_PEERCRED does. */
static void other_users_are_turned_away(void **state)
{
	struct sf_error err = { 0 };
	char path[SF_CHANNEL_PATH], ours[128];
	int listener, pid, status;
	(void)state;

	if (geteuid() != 0)
		skip();
	assert_true(sf_channel_collector_path(getpid(), false, path, &err));
	listener = sf_channel_listen(path, &err);
	assert_true(listener >= 0);
	snprintf(ours, sizeof(ours), "%s/stillframe", folder);
	assert_int_equal(call_as_nobody(path), 3); /* the folder */
	assert_int_equal(chmod(folder, 0755) | chmod(ours, 0755), 0);
	assert_int_equal(call_as_nobody(path), 3); /* the socket's own mode */
	assert_int_equal(chmod(path, 0666), 0);
	pid = fork();
	if (pid == 0)
		_exit(call_as_nobody(path));
	assert_int_equal(poll(&(struct pollfd){ .fd = listener, .events = POLLIN }, 1, 10000), 1);
	assert_int_equal(sf_channel_accept(listener, &err), -1);
	assert_int_equal(err.code, SF_E_NONE);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	close(listener);
	unlink(path);
}

/* Root's stillframe takes calls of what its command has become. It sees that these are another user's. */
static void others_call_a_socket_that_is_open_to_all(void **state)
{
	struct sf_error err = { 0 };
	char path[SF_CHANNEL_PATH];
	int listener, fd, pid, status;
	bool is_own = true;
	(void)state;

	if (geteuid() != 0)
		skip();
	assert_true(sf_channel_collector_path(getpid(), true, path, &err));
	assert_memory_equal(path, "/tmp/stillframe-0-all", strlen("/tmp/stillframe-0-all"));
	listener = sf_channel_listen(path, &err);
	assert_true(listener >= 0);
	assert_int_equal(call_as_nobody(path), 3);
	assert_true(sf_channel_open_to_all(path, &err));
	pid = fork();
	if (pid == 0)
		_exit(call_as_nobody(path));
	assert_int_equal(poll(&(struct pollfd){ .fd = listener, .events = POLLIN }, 1, 10000), 1);
	fd = sf_channel_accept_any(listener, &is_own, &err);
	assert_true(fd >= 0);
	assert_false(is_own);
	close(fd);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	close(listener);
	sf_channel_remove(path);
}

/* The number is a child's: what an agent that had it was killed and left behind is nobody else's either. */
static void nobody_listens(void **state)
{
	struct sf_error err = { 0 };
	char path[SF_CHANNEL_PATH];
	pid_t child = fork();
	(void)state;

	if (child == 0) {
		pause();
		_exit(0);
	}
	if (sf_channel_agent_path(child, path, NULL))
		unlink(path);
	assert_int_equal(sf_channel_call(child, &err), -1);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	assert_int_equal(err.os_errno, ENOENT);
}

/* --- a name that leads elsewhere between the look and the use --- */

int __real_bind(int fd, const struct sockaddr *address, socklen_t size);
int __wrap_bind(int fd, const struct sockaddr *address, socklen_t size);
int __real_connect(int fd, const struct sockaddr *address, socklen_t size);
int __wrap_connect(int fd, const struct sockaddr *address, socklen_t size);

static void (*before_call)(void); /* once, right before the next bind or connect */

static void meddle(void)
{
	void (*now)(void) = before_call;

	before_call = NULL;
	if (now)
		now();
}

int __wrap_bind(int fd, const struct sockaddr *address, socklen_t size)
{
	meddle();
	return __real_bind(fd, address, size);
}

int __wrap_connect(int fd, const struct sockaddr *address, socklen_t size)
{
	meddle();
	return __real_connect(fd, address, size);
}

static char ours[128], moved[128], theirs[128];

/* The folder goes away, and a link to another one stands in its place. */
static void replace_folder(void)
{
	assert_int_equal(rename(ours, moved) | symlink(theirs, ours), 0);
}

static void put_back(void)
{
	assert_int_equal(unlink(ours) | rename(moved, ours), 0);
}

static void name_folders(void)
{
	snprintf(ours, sizeof(ours), "%s/stillframe", folder);
	snprintf(moved, sizeof(moved), "%s/moved", folder);
	snprintf(theirs, sizeof(theirs), "%s/theirs", folder);
	assert_true(mkdir(theirs, 0700) == 0 || errno == EEXIST);
}

static void a_replaced_folder_is_not_listened_in(void **state)
{
	struct sf_error err = { 0 };
	char path[SF_CHANNEL_PATH], elsewhere[256];
	int listener;
	(void)state;

	name_folders();
	assert_true(sf_channel_collector_path(getpid(), false, path, &err));
	before_call = replace_folder;
	listener = sf_channel_listen(path, &err);
	assert_null(before_call);
	snprintf(elsewhere, sizeof(elsewhere), "%s%s", theirs, strrchr(path, '/'));
	assert_false(is_there(elsewhere));
	put_back();
	assert_true(listener >= 0);
	assert_true(is_there(path));
	close(listener);
	sf_channel_remove(path);
	assert_false(is_there(path));
}

/* The call reaches the process that stood there: not another one, to whom the name leads by now. */
static void a_replaced_folder_is_not_called(void **state)
{
	struct sf_error err = { 0 };
	char path[SF_CHANNEL_PATH], elsewhere[SF_CHANNEL_PATH];
	int listener, other, channel, got;
	(void)state;

	name_folders();
	assert_true(sf_channel_agent_path(getpid(), path, &err));
	listener = sf_channel_listen(path, &err);
	snprintf(elsewhere, sizeof(elsewhere), "%.60s/%.40s", theirs, strrchr(path, '/') + 1);
	other = sf_channel_listen(elsewhere, &err);
	assert_true(listener >= 0 && other >= 0);
	for (int by_pid = 0; by_pid < 2; by_pid++) {
		before_call = replace_folder;
		channel = by_pid ? sf_channel_call(getpid(), &err) : sf_channel_connect(path, &err);
		assert_null(before_call);
		put_back();
		assert_true(channel >= 0);
		assert_int_equal(sf_channel_accept(other, &err), -1);
		got = sf_channel_accept(listener, &err);
		assert_true(got >= 0);
		close(got);
		close(channel);
	}
	close(listener);
	close(other);
	sf_channel_remove(path);
	sf_channel_remove(elsewhere);
}

/* A link to a socket is none, wherever it leads: it is neither called nor removed. */
static void links_are_not_called(void **state)
{
	struct sf_error err = { 0 };
	char path[SF_CHANNEL_PATH], target[SF_CHANNEL_PATH];
	int listener;
	(void)state;

	name_folders();
	assert_true(sf_channel_agent_path(getpid(), path, &err));
	snprintf(target, sizeof(target), "%.60s/target.sock", theirs);
	listener = sf_channel_listen(target, &err);
	assert_true(listener >= 0);
	assert_int_equal(symlink(target, path), 0);
	assert_int_equal(sf_channel_connect(path, &err), -1);
	assert_int_equal(sf_channel_call(getpid(), &err), -1);
	sf_channel_remove(path);
	assert_true(is_there(path));
	close(listener);
	sf_channel_remove(target);
	assert_int_equal(unlink(path), 0);
}

/* --- another user namespace, another root --- */

static bool write_text(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	bool ok = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);

	if (fd >= 0)
		close(fd);
	return ok;
}

/*
 * As an ordinary user who is root in a namespace of his own, with a /tmp of his own in which /tmp/stillframe-0 is not
 * safe. `link`: a root of its own, in which /tmp is this link.
 */
static bool enter_namespaces(const char *link, bool has_proc)
{
	char map[32], groups[32];
	const gid_t gid = getegid() ? getegid() : 65534;
	const uid_t uid = geteuid() ? geteuid() : 65534;

	if (geteuid() == 0 && (setresgid(gid, gid, gid) != 0 || setresuid(uid, uid, uid) != 0))
		return false;
	prctl(PR_SET_DUMPABLE, 1);
	snprintf(map, sizeof(map), "0 %u 1", (unsigned)uid);
	snprintf(groups, sizeof(groups), "0 %u 1", (unsigned)gid);
	if (unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0 || !write_text("/proc/self/uid_map", map) ||
	    !write_text("/proc/self/setgroups", "deny") || !write_text("/proc/self/gid_map", groups) ||
	    mount("none", "/tmp", "tmpfs", 0, NULL) != 0 || mkdir("/tmp/stillframe-0", 0700) != 0 ||
	    chmod("/tmp/stillframe-0", 0777) != 0)
		return false;
	if (!link)
		return true;
	return mkdir("/tmp/root", 0755) == 0 && mkdir("/tmp/root/there", 0755) == 0 &&
	       mkdir("/tmp/root/proc", 0755) == 0 && symlink(link, "/tmp/root/tmp") == 0 &&
	       (!has_proc || mount("/proc", "/tmp/root/proc", NULL, MS_BIND | MS_REC, NULL) == 0) &&
	       chroot("/tmp/root") == 0 && chdir("/") == 0;
}

/* Listens as an agent there, writes its path, and waits for the end. */
static void listen_there(int out, const char *link, bool has_proc)
{
	struct sf_error err = { 0 };
	char path[SF_CHANNEL_PATH] = "";

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	unsetenv("XDG_RUNTIME_DIR");
	if (!enter_namespaces(link, has_proc))
		_exit(write(out, "?", 1) == 1 ? 1 : 2);
	prctl(PR_SET_PDEATHSIG, SIGKILL); /* setuid took it off */
	if (!sf_channel_agent_path(getpid(), path, &err) || sf_channel_listen(path, &err) < 0)
		snprintf(path, sizeof(path), "%.100s", err.text);
	if (write(out, path, sizeof(path)) == sizeof(path))
		pause();
	_exit(0);
}

static void is_found_there(const char *link, bool has_proc, const char *wanted)
{
	char path[SF_CHANNEL_PATH] = "", expected[SF_CHANNEL_PATH];
	struct sf_error err = { 0 };
	int ends[2], channel;
	pid_t child;

	assert_int_equal(chmod(folder, 0755), 0);
	assert_int_equal(pipe(ends), 0);
	child = fork();
	if (child == 0)
		listen_there(ends[1], link, has_proc);
	close(ends[1]);
	assert_true(read(ends[0], path, sizeof(path)) > 0);
	channel = *path == '?' ? -1 : sf_channel_call(child, &err);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	close(ends[0]);
	if (*path == '?')
		skip(); /* no user namespaces here */
	snprintf(expected, sizeof(expected), "%s/agent-%d.sock", wanted, child);
	assert_string_equal(path, expected);
	if (channel < 0)
		fail_msg("%s", err.text);
	close(channel);
}

/* /tmp/stillframe-0 is another's there (the real root's, or as here one that anybody may write to): the next one is taken. */
static void roots_of_user_namespaces_have_their_own_folder(void **state)
{
	(void)state;
	is_found_there(NULL, true, "/tmp/stillframe-0-1");
}

/* Its /tmp is a link to /there, which is below its root: from outside that is no /there of ours. */
static void links_of_containers_stay_in_them(void **state)
{
	(void)state;
	is_found_there("/there", true, "/tmp/stillframe-0");
}

static void without_proc_it_listens_by_name(void **state)
{
	(void)state;
	is_found_there("/there", false, "/tmp/stillframe-0");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sockets_of_the_dead_are_swept),
		cmocka_unit_test(messages_arrive_whole),
		cmocka_unit_test(waiting_ends),
		cmocka_unit_test(damaged_messages_are_refused),
		cmocka_unit_test(too_long_texts_are_not_sent),
		cmocka_unit_test(unwanted_descriptors_are_closed),
		cmocka_unit_test(sockets_of_the_dead_are_replaced),
		cmocka_unit_test(other_files_are_left_alone),
		cmocka_unit_test(folders_of_others_are_not_used),
		cmocka_unit_test(other_users_are_turned_away),
		cmocka_unit_test(others_call_a_socket_that_is_open_to_all),
		cmocka_unit_test(nobody_listens),
		cmocka_unit_test(a_replaced_folder_is_not_listened_in),
		cmocka_unit_test(a_replaced_folder_is_not_called),
		cmocka_unit_test(links_are_not_called),
		cmocka_unit_test(roots_of_user_namespaces_have_their_own_folder),
		cmocka_unit_test(links_of_containers_stay_in_them),
		cmocka_unit_test(without_proc_it_listens_by_name),
	};

	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
