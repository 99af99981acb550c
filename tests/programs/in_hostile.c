/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An agent that does not behave: calls the stillframe that STILLFRAME= names, as the real one does, and then
 * does what its argument says. For the tests of stillframe's end.
 *
 *   in_hostile KIND
 */
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "frozen/output/outbox.h"
#include "frozen/trace.h"
#include "os/channel.h"
#include "stream/control.h"
#include "stream/record.h"

#define RING (UINT64_C(1) << 20)
#define SIZE (sizeof(struct sf_outbox_header) + RING)

static int channel, memory_fd;
static struct sf_outbox_header *box;

static void die(const char *what)
{
	perror(what);
	exit(9);
}

static uint64_t now_ns(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

static int call(void)
{
	const char *text = getenv("STILLFRAME"), *start = text ? strstr(text, "connect=") : NULL;
	char path[SF_CHANNEL_PATH];
	int fd;

	if (!start)
		die("no STILLFRAME=connect=");
	snprintf(path, sizeof(path), "%.*s", (int)strcspn(start + 8, ","), start + 8);
	fd = sf_channel_connect(path, NULL);
	return fd;
}

static void expect(int kind)
{
	struct sf_control message;

	if (sf_control_receive(channel, &message, NULL, 20000, NULL) != 1 || message.kind != kind)
		die("not what was expected");
	if (kind == SF_CONTROL_START)
		fprintf(stderr, "told: %s\n", message.text);
}

/* Until stillframe has had enough. Takes no notice of what it says. */
static void linger(void)
{
	char message[SF_CHANNEL_MAX];

	while (recv(channel, message, sizeof(message), 0) > 0)
		;
}

static bool is_closed(void)
{
	char message[SF_CHANNEL_MAX];

	return recv(channel, message, sizeof(message), MSG_DONTWAIT) == 0;
}

static void make_box(int seals)
{
	memory_fd = memfd_create("outbox", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (memory_fd < 0 || ftruncate(memory_fd, (off_t)SIZE) != 0 ||
	    fcntl(memory_fd, F_ADD_SEALS, seals) != 0)
		die("memfd");
	box = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, memory_fd, 0);
	if (box == MAP_FAILED)
		die("mmap");
	sf_outbox_init(box, RING, SF_STREAM_VERSION);
}

static void ready(int fd)
{
	if (!sf_control_send(channel, SF_CONTROL_READY, NULL, fd, NULL))
		die("READY");
}

/* A record and what follows its fixed part. */
static void put(uint16_t type, const void *record, size_t size, const void *rest, size_t rest_size)
{
	struct sf_outbox_piece pieces[] = {
		{ (const char *)record + sizeof(struct sf_record_header),
		  size - sizeof(struct sf_record_header) },
		{ rest, rest_size },
	};

	sf_outbox_put(box, type, pieces, 2);
}

static void introduce(void)
{
	struct sf_stream_process process = { .pid = getpid(), .parent = getppid(), .time_ns = now_ns(),
					     .walk = 1, .name_size = 7, .command_size = 7 };
	struct sf_stream_thread thread = { .serial = 1, .tid = getpid(), .time_ns = now_ns(),
					   .name_size = 7 };

	put(SF_STREAM_PROCESS, &process, sizeof(process), "hostilehostile", 14);
	put(SF_STREAM_THREAD, &thread, sizeof(thread), "hostile", 7);
}

static void sample(uint64_t cpu_ns)
{
	const struct sf_stream_frame frames[2] = { { .address = 0x1000 }, { .address = 0x2000 } };
	struct sf_stream_sample record = { .serial = 1, .n_frames = 2, .time_ns = now_ns(),
					   .cpu_ns = cpu_ns, .wall_ns = cpu_ns, .ticks = 1,
					   .syscall = -1, .end = SF_END_ROOT };

	put(SF_STREAM_SAMPLE, &record, sizeof(record), frames, sizeof(frames));
}

static void samples(int n)
{
	for (int i = 0; i < n; i++)
		sample(5000000);
}

static void finish(void)
{
	struct sf_stream_thread_end thread_end = { .serial = 1, .time_ns = now_ns(), .cpu_ns = 500000000 };
	struct sf_stream_end end = { .time_ns = now_ns() };

	put(SF_STREAM_THREAD_END, &thread_end, sizeof(thread_end), "", 0);
	put(SF_STREAM_END, &end, sizeof(end), "", 0);
	sf_control_send(channel, SF_CONTROL_DONE, NULL, -1, NULL);
}

/* As an agent should: what the others are compared with. */
static void behave(void)
{
	make_box(F_SEAL_SHRINK | F_SEAL_GROW);
	introduce();
	ready(memory_fd);
	samples(100);
}

static void good(void)
{
	behave();
	expect(SF_CONTROL_STOP);
	samples(10); /* written until DONE */
	finish();
}

static void ends_early(void)
{
	behave();
	finish();
}

static void is_killed(void)
{
	behave();
	kill(getpid(), SIGKILL);
}

/* Killed between reserving a record and publishing it. */
static void is_torn(void)
{
	behave();
	atomic_fetch_add(&box->head, 64);
	kill(getpid(), SIGKILL);
}

/* A descendant has the channel open after the end of the process. */
static void leaves_a_child(void)
{
	behave();
	if (fork() == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		close(1);
		close(2);
		sleep(30);
	}
	_exit(0);
}

static void is_silent(void)
{
	linger();
}

static void is_deaf(void)
{
	behave();
	linger();
}

static void refuses(void)
{
	sf_control_send(channel, SF_CONTROL_REFUSED, "no \033[31mred\nlines", -1, NULL);
	linger();
}

static void closes(void)
{
	close(channel);
}

static void babbles(void)
{
	if (send(channel, "babble", 6, 0) < 0)
		die("send");
	linger();
}

static void gives_orders(void)
{
	sf_control_send(channel, SF_CONTROL_STOP, NULL, -1, NULL);
	linger();
}

static void is_ready_twice(void)
{
	behave();
	ready(memory_fd);
	linger();
}

static void no_outbox(void)
{
	ready(-1);
	linger();
}

static void not_memory(void)
{
	ready(open("/dev/zero", O_RDWR | O_CLOEXEC));
	linger();
}

static void a_file(void)
{
	char path[] = "/tmp/in_hostile.XXXXXX";
	int fd = mkstemp(path);

	unlink(path);
	if (ftruncate(fd, (off_t)SIZE) != 0)
		die("ftruncate");
	ready(fd);
	ftruncate(fd, 0);
	linger();
}

static void shrinks(void)
{
	make_box(F_SEAL_GROW);
	introduce();
	ready(memory_fd);
	if (ftruncate(memory_fd, 0) != 0)
		die("ftruncate");
	linger();
}

static void tiny(void)
{
	memory_fd = memfd_create("outbox", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (ftruncate(memory_fd, 100) != 0 || fcntl(memory_fd, F_ADD_SEALS, F_SEAL_SHRINK) != 0)
		die("memfd");
	ready(memory_fd);
	linger();
}

/* Of pages that may not be there when they are touched. */
static void huge(void)
{
	memory_fd = memfd_create("outbox", MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_HUGETLB);
	if (memory_fd < 0 || ftruncate(memory_fd, 1 << 21) != 0 ||
	    fcntl(memory_fd, F_ADD_SEALS, F_SEAL_SHRINK) != 0)
		die("no huge pages");
	ready(memory_fd);
	linger();
}

/* Says that its ring is larger than its memory. */
static void boasts(void)
{
	make_box(F_SEAL_SHRINK);
	introduce();
	box->size = RING * 1024;
	ready(memory_fd);
	linger();
}

static void garbage(void)
{
	behave();
	for (uint64_t i = 0; i < RING; i++)
		box->bytes[i] = (uint8_t)(i * 2654435761u >> 13);
	atomic_store(&box->head, RING / 2);
	linger();
}

/* Its positions are anywhere, and change while they are looked at. */
static void wild(void)
{
	behave();
	for (uint64_t x = 88172645463325252u; !is_closed(); ) {
		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
		atomic_store(&box->tail, x);
		atomic_store(&box->head, x >> 3);
		*(volatile uint32_t *)(box->bytes + (x & (RING - 8))) = (uint32_t)(x >> 32);
	}
}

static void too_much_time(void)
{
	behave();
	for (int i = 0; i < 10; i++)
		sample(UINT64_MAX / 8);
	linger();
}

static void unknown_things(void)
{
	struct sf_stream_loss loss = { .cause = 4000000000u, .ticks = 1 };

	behave();
	put(SF_STREAM_LOSS, &loss, sizeof(loss), "", 0);
	linger();
}

/* More than can be read, for as long as it is let. */
static void endless(void)
{
	behave();
	while (!is_closed())
		samples(1000);
}

/*
 * Writes records of each kind that has a limit, without end. It waits while half of the ring is full: in a full ring small
 * records take all the room, and no sample gets in.
 */
static void floods(void)
{
	behave();
	for (uint32_t i = 2; !is_closed(); i++) {
		while (sf_outbox_used(box) > RING / 2 && !is_closed())
			sched_yield();
		char text[64];
		uint16_t size = (uint16_t)snprintf(text, sizeof(text), "%060u", i);
		const struct sf_stream_frame frames[3] = {
			{ .address = 64 * (uint64_t)i }, { .address = i, .kind = SF_KIND_C2 },
			{ .address = i, .image = i },
		};
		const struct sf_stream_function function = { .name_size = size };
		struct sf_stream_thread thread = { .serial = i, .tid = (int32_t)i, .time_ns = now_ns(),
						   .name_size = size };
		struct sf_stream_label label = { .number = i, .value_size = size };
		struct sf_stream_image image = { .number = i, .inode = i, .path_size = size };
		struct sf_stream_note note = { .size = size };
		struct sf_stream_place place = { .key = i, .n_functions = 1, .text_size = size };
		struct sf_stream_sample record = { .serial = i, .n_frames = 3, .time_ns = now_ns() + i * UINT64_C(1000000000),
						   .cpu_ns = 1000, .ticks = 1, .label = i, .syscall = -1,
						   .end = SF_END_ROOT };
		char functions[sizeof(function) + sizeof(text)];

		memcpy(functions, &function, sizeof(function));
		memcpy(functions + sizeof(function), text, size);
		put(SF_STREAM_THREAD, &thread, sizeof(thread), text, size);
		put(SF_STREAM_LABEL, &label, offsetof(struct sf_stream_label, text), text, size);
		put(SF_STREAM_IMAGE, &image, sizeof(image), text, size);
		put(SF_STREAM_NOTE, &note, sizeof(note), text, size);
		put(SF_STREAM_PLACE, &place, sizeof(place), functions, sizeof(function) + size);
		put(SF_STREAM_SAMPLE, &record, sizeof(record), frames, sizeof(frames));
	}
}

/* Calls again and again, and holds on to what it gets. */
static void crowd(void)
{
	behave();
	for (int i = 0; i < 3000; i++) {
		int fd = call();

		if (i % 2 && fd >= 0)
			close(fd);
	}
	finish();
}

static void wait_until_stopped(int pid)
{
	char path[32], line[256] = "";

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	while (!strstr(line, ") T ")) {
		FILE *file = fopen(path, "re");

		if (!file || !fgets(line, sizeof(line), file))
			die("stat");
		fclose(file);
	}
}

/* All that an agent says, and the call of the next one in the same process, are there at once. */
static void calls_again(void)
{
	kill(getppid(), SIGSTOP);
	wait_until_stopped(getppid());
	behave();
	finish();
	channel = call();
	kill(getppid(), SIGCONT);
	expect(SF_CONTROL_START);
}

/* A process that is not the one that was launched calls: it is turned away. */
static void somebody_else(void)
{
	int status, pid = fork();

	if (pid == 0) {
		char byte;

		channel = call();
		_exit(recv(channel, &byte, 1, 0) == 0 ? 42 : 43);
	}
	waitpid(pid, &status, 0);
	behave();
	finish();
	_exit(WEXITSTATUS(status));
}

static const struct {
	const char *name;
	void (*fn)(void);
} kinds[] = {
	{ "good", good }, { "ends-early", ends_early }, { "killed", is_killed }, { "torn", is_torn },
	{ "leaves-a-child", leaves_a_child }, { "silent", is_silent }, { "deaf", is_deaf },
	{ "refuses", refuses }, { "closes", closes }, { "babbles", babbles },
	{ "gives-orders", gives_orders }, { "ready-twice", is_ready_twice }, { "no-outbox", no_outbox },
	{ "not-memory", not_memory }, { "a-file", a_file }, { "shrinks", shrinks }, { "tiny", tiny },
	{ "boasts", boasts }, { "garbage", garbage }, { "wild", wild },
	{ "too-much-time", too_much_time }, { "unknown-things", unknown_things },
	{ "endless", endless }, { "floods", floods }, { "crowd", crowd }, { "huge", huge },
	{ "calls-again", calls_again }, { "somebody-else", somebody_else },
};

int main(int argc, char **argv)
{
	for (size_t i = 0; argc == 2 && i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		if (strcmp(argv[1], kinds[i].name) != 0)
			continue;
		alarm(120);
		channel = call();
		if (channel < 0)
			die("call");
		expect(SF_CONTROL_START);
		kinds[i].fn();
		return 0;
	}
	fprintf(stderr, "usage: in_hostile KIND\n");
	return 2;
}
