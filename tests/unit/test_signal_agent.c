/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One agent, read by the signal engine: whoever writes faster than is read has no more than its turn. The sink of
 * these tests is the agent: it writes a record for each that it is told. And for whom is waited when no agent is left.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "capture/signal/signal_engine.h"
#include "os/process.h"
#include "os/task.h"
#include "stream/record.h"
#include "stream_builder.h"

#define RING (64u << 10)
#define ENDLESS 2000000u         /* more than any turn; so many and no more, so that a test that fails ends */

static struct stream_builder built;
static struct sf_capture capture;
static struct sf_signal_agent *agent;
static unsigned n_told, n_noted;

static bool write_record(void)
{
	const struct sf_record_header *note = stream_last(&built);
	const struct sf_outbox_piece piece = { note + 1, note->size - sizeof(*note) };

	return sf_outbox_put(agent->outbox, note->type, &piece, 1);
}

static bool on_note(void *arg, int32_t pid, const char *text, struct sf_error *err)
{
	(void)arg, (void)pid, (void)text, (void)err;
	if (++n_told < ENDLESS)
		write_record();
	return true;
}

/* Of records that found no room. */
static bool on_loss(void *arg, uint32_t serial, enum sf_loss cause, const struct sf_weight *weight,
		    struct sf_error *err)
{
	(void)arg, (void)serial, (void)weight, (void)err;
	if (cause == SF_LOSS_LATE && ++n_told < ENDLESS)
		write_record();
	return true;
}

static const struct sf_sink sink = { .note = on_note, .loss = on_loss };

/* It samples already, and its ring is full. */
static int begin(void **state)
{
	struct sf_error err = { 0 };
	int ends[2];

	(void)state;
	stream_start(&built);
	stream_loss(&built, 0, SF_LOSS_LATE, 1); /* of which there may be any number */
	capture = (struct sf_capture){ .sink = &sink, .listener = -1 };
	capture.record = malloc(SF_STREAM_MAX_RECORD);
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends), 0);
	assert_true(sf_signal_agent_add(&capture, ends[0], getpid(), 1, &err));
	close(ends[1]);
	agent = capture.agents.items[0];
	agent->mapped_size = sizeof(struct sf_outbox_header) + RING;
	agent->outbox = mmap(NULL, agent->mapped_size, PROT_READ | PROT_WRITE,
			     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_true(agent->outbox != MAP_FAILED);
	agent->outbox = sf_outbox_init(agent->outbox, RING, SF_STREAM_VERSION);
	agent->ring_size = RING;
	agent->state = SF_SIGNAL_SAMPLING;
	agent->sampled = true;
	n_told = 0;
	while (write_record())
		;
	return 0;
}

static int end(void **state)
{
	(void)state;
	sf_signal_agent_free(agent);
	sf_vec_deinit(&capture.agents);
	free(capture.record);
	return 0;
}

static void a_turn_has_an_end(void **state)
{
	struct sf_error err = { 0 };
	bool more = false;

	(void)state;
	assert_true(sf_signal_agent_drain(&capture, agent, &more, &err));
	assert_true(more);
	assert_in_range(n_told, RING / stream_last(&built)->size, 100000);
	assert_int_equal(agent->state, SF_SIGNAL_SAMPLING);
}

/* Bytes that were in the ring are read, not those that it writes meanwhile. */
static void the_last_turn_has_an_end(void **state)
{
	struct sf_error err = { 0 };
	const unsigned n_held = RING / stream_last(&built)->size;

	(void)state;
	assert_true(sf_signal_agent_end(&capture, agent, NULL, &err));
	assert_in_range(n_told, n_held - 1, n_held + 1);
	assert_int_equal(agent->state, SF_SIGNAL_OVER);
}

static bool count_note(void *arg, int32_t pid, const char *text, struct sf_error *err)
{
	(void)arg, (void)pid, (void)text, (void)err;
	n_noted++;
	return true;
}

static bool count_loss(void *arg, uint32_t serial, enum sf_loss cause, const struct sf_weight *weight, struct sf_error *err)
{
	(void)arg, (void)serial, (void)cause, (void)err;
	n_told += weight->ticks;
	return true;
}

static bool on_idle(void *arg, uint64_t now_ns, struct sf_error *err)
{
	(void)arg, (void)now_ns, (void)err;
	return true;
}

/* A descriptor of an outbox with one record. */
static int make_outbox(void)
{
	const size_t size = sizeof(struct sf_outbox_header) + RING;
	const int fd = memfd_create("outbox", MFD_ALLOW_SEALING);
	const struct sf_record_header *last = stream_last(&built);
	const struct sf_outbox_piece piece = { last + 1, last->size - sizeof(*last) };
	void *memory;

	assert_true(fd >= 0 && ftruncate(fd, (off_t)size) == 0 && fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK) == 0);
	memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	assert_true(memory != MAP_FAILED);
	assert_true(sf_outbox_put(sf_outbox_init(memory, RING, SF_STREAM_VERSION), last->type, &piece, 1));
	assert_int_equal(munmap(memory, size), 0);
	return fd;
}

/* Whether the recording is fine of an agent that may have begun, and is told to stop before its READY was heard. */
static bool record_until_stopped(bool is_ready)
{
	static const struct sf_sink counting = { .note = count_note, .loss = count_loss, .idle = on_idle };
	struct sf_capture *stopped = calloc(1, sizeof(*stopped));
	struct sf_error err = { 0 };
	const int fd = make_outbox();
	int ends[2];
	bool fine;

	*stopped = (struct sf_capture){ .sink = &counting, .listener = -1, .options.child = getpid(), .options.pid = getpid() };
	stopped->record = malloc(SF_STREAM_MAX_RECORD);
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends), 0);
	assert_true(sf_signal_agent_add(stopped, ends[0], getpid(), 1, &err));
	if (is_ready) {
		assert_true(sf_control_send(ends[1], SF_CONTROL_READY, NULL, fd, &err));
		assert_true(sf_control_send(ends[1], SF_CONTROL_DONE, NULL, -1, &err));
	}
	close(fd);
	n_told = n_noted = 0;
	sf_engine_signal.stop(stopped);
	fine = sf_engine_signal.run(stopped, &counting, &err);
	sf_engine_signal.close(stopped);
	close(ends[1]);
	return fine;
}

static void what_is_ready_at_the_stop_is_heard(void **state)
{
	(void)state;
	assert_true(record_until_stopped(true));
	assert_int_equal(n_told, 1);
	assert_int_equal(n_noted, 0);
	assert_false(record_until_stopped(false));
	assert_int_equal(n_told, 0);
	assert_int_equal(n_noted, 1);
}

/* Of those whose agents go it is found out later how they run on. */
static void who_goes_by_itself_is_away(void **state)
{
	struct sf_error err = { 0 };

	(void)state;
	assert_true(sf_signal_agent_hear(&capture, agent, &err));
	assert_int_equal(agent->state, SF_SIGNAL_OVER);
	assert_int_equal(capture.away.n, 1);
	sf_vec_deinit(&capture.away);
}

/* A program that ends at that moment is there for a while without its agent, and has not run on without it. */
static void who_goes_when_told_to_stop_is_not_away(void **state)
{
	struct sf_error err = { 0 };

	(void)state;
	sf_signal_agent_stop(agent);
	assert_true(sf_signal_agent_hear(&capture, agent, &err));
	assert_int_equal(agent->state, SF_SIGNAL_OVER);
	assert_int_equal(capture.away.n, 0);
}

#define MS UINT64_C(1000000)

/* Ours: all processes are looked through, and this test may run twice at once, of two builds. */
static char path[64];

/*
 * This program, which is to call at this socket by its environment; `how`: below. When this returns, it is in this state, and not
 * in its exec any more.
 */
static pid_t started(const char *how, const char *called, char letter)
{
	char variable[128];
	char *const environment[] = { "HOME=/", variable, NULL };
	pid_t pid;

	snprintf(variable, sizeof(variable), "STILLFRAME=connect=%s,children", called);
	pid = fork();
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		execle("/proc/self/exe", "test_signal_agent", how, NULL, environment);
		_exit(1);
	}
	while (!sf_process_environment_has(pid, variable) || sf_task_letter(pid, pid) != letter)
		usleep(1000);
	return pid;
}

static void ended(pid_t pid)
{
	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

/* A process without a CPU cannot be had at will. One that waits for the child of its vfork uses none, and is not asleep (S). */
static void a_process_that_had_no_cpu_yet_is_waited_for(void **state)
{
	uint64_t now_ns = UINT64_C(1000000000000);
	pid_t pid;

	(void)state;
	capture = (struct sf_capture){ .child_ended = true, .last_there_ns = now_ns };
	snprintf(capture.path, sizeof(capture.path), "%s", path);
	pid = started("--vforks", path, 'D');
	assert_true(sf_signal_children_go_on(&capture, now_ns + 199 * MS));
	assert_true(sf_signal_children_go_on(&capture, now_ns + 300 * MS));
	assert_true(sf_signal_children_go_on(&capture, now_ns + 9000 * MS));
	assert_false(sf_signal_children_go_on(&capture, now_ns + 10000 * MS));
	ended(pid);
	assert_false(sf_signal_children_go_on(&capture, now_ns + 9200 * MS));
	pid = started("--vforks", "/tmp/another.sock", 'D');
	assert_false(sf_signal_children_go_on(&capture, now_ns + 9400 * MS));
	ended(pid);
	pid = started("--sleeps", path, 'S');
	assert_false(sf_signal_children_go_on(&capture, now_ns + 9600 * MS));
	ended(pid);
}

/* It may have started another process just before its end, long after the child's. */
static void who_comes_after_the_last_agent_has_time(void **state)
{
	uint64_t now_ns = UINT64_C(1000000000000);

	(void)state;
	capture.child_ended = true;
	capture.last_there_ns = now_ns;
	snprintf(capture.path, sizeof(capture.path), "%s", path);
	assert_true(sf_signal_children_go_on(&capture, now_ns + 5000 * MS));
	capture.agents.n = 0;
	assert_true(sf_signal_children_go_on(&capture, now_ns + 5199 * MS));
	assert_false(sf_signal_children_go_on(&capture, now_ns + 5200 * MS));
	capture.agents.n = 1;
}

static int be_one_that_does_not_call(const char *how)
{
	const pid_t parent = getpid();

	if (strcmp(how, "--vforks") == 0 && vfork() == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		while (getppid() == parent) /* it may have been killed before */
			pause();
		_exit(0);
	}
	pause();
	return 0;
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_turn_has_an_end, begin, end),
		cmocka_unit_test_setup_teardown(the_last_turn_has_an_end, begin, end),
		cmocka_unit_test_setup_teardown(what_is_ready_at_the_stop_is_heard, begin, end),
		cmocka_unit_test_setup_teardown(who_goes_by_itself_is_away, begin, end),
		cmocka_unit_test_setup_teardown(who_goes_when_told_to_stop_is_not_away, begin, end),
		cmocka_unit_test(a_process_that_had_no_cpu_yet_is_waited_for),
		cmocka_unit_test_setup_teardown(who_comes_after_the_last_agent_has_time, begin, end),
	};

	if (argc > 1)
		return be_one_that_does_not_call(argv[1]);
	snprintf(path, sizeof(path), "/tmp/stillframe-test/record-%d.sock", (int)getpid());
	return cmocka_run_group_tests(tests, NULL, NULL);
}
