/* SPDX-License-Identifier: Apache-2.0 */
/* A dump as JSON. */
#include "cli/dump_json.h"

#include "export/json_text.h"
#include "frozen/ends.h"

static struct json_object *frame_json(const struct sf_dump *dump, const struct sf_dump_frame *frame)
{
	struct json_object *json = json_object_new_object();

	sf_json_hex(json, "pc", frame->pc);
	sf_json_text(json, "function", sf_dump_string(dump, frame->function));
	sf_json_text(json, "module", sf_dump_path(dump, frame->image));
	sf_json_hex(json, "address", frame->address);
	sf_json_text(json, "file", sf_dump_string(dump, frame->file));
	sf_json_number(json, "line", frame->line);
	sf_json_flag(json, "inlined", frame->inlined);
	if (frame->approximate)
		sf_json_flag(json, "approximate", true);
	sf_json_text(json, "via", sf_via_word(frame->via));
	sf_json_text(json, "kind", sf_kind_word(frame->kind));
	return json;
}

static struct json_object *wait_json(const struct sf_dump_thread *thread)
{
	struct json_object *json = thread->wait[0] ? json_object_new_object() : NULL;

	if (json) {
		sf_json_text(json, "syscall", thread->wait);
		sf_json_text(json, "detail", thread->detail);
	}
	return json;
}

static int32_t tid_of(const struct sf_dump *dump, size_t thread)
{
	return dump->threads.items[thread].seen.tid;
}

static struct json_object *lock_json(const struct sf_dump *dump, const struct sf_dump_thread *thread)
{
	const struct sf_lock_wait *lock = &thread->lock;
	struct json_object *json = lock->kind ? json_object_new_object() : NULL;

	if (!json)
		return NULL;
	sf_json_text(json, "kind", lock->kind);
	sf_json_hex(json, "address", lock->address);
	sf_json_text(json, "class", lock->of);
	json_object_object_add(json, "owner", thread->owner ? json_object_new_int(tid_of(dump, thread->owner - 1)) : NULL);
	sf_json_flag(json, "timed", lock->timed);
	return json;
}

static struct json_object *circle_json(const struct sf_dump *dump, const struct sf_dump_circle *circle)
{
	struct json_object *json = json_object_new_object(), *threads = json_object_new_array();
	size_t at = circle->first;

	json_object_object_add(json, "threads", threads);
	for (size_t i = 0; i < circle->n; i++, at = dump->threads.items[at].owner - 1)
		json_object_array_add(threads, json_object_new_int(tid_of(dump, at)));
	sf_json_flag(json, "timed", circle->timed);
	return json;
}

static struct json_object *thread_json(const struct sf_dump *dump, const struct sf_dump_thread *thread)
{
	struct json_object *json = json_object_new_object(), *frames = json_object_new_array();

	json_object_object_add(json, "tid", json_object_new_int(thread->seen.tid));
	sf_json_text(json, "name", thread->name);
	sf_json_text(json, "state", sf_state_word(thread->seen.state));
	json_object_object_add(json, "wait", wait_json(thread));
	json_object_object_add(json, "purpose", thread->purpose ? json_object_new_string(thread->purpose) : NULL);
	json_object_object_add(json, "lock", lock_json(dump, thread));
	sf_json_number(json, "held_ns", thread->seen.held_ns);
	sf_json_flag(json, "unheld", thread->seen.unheld);
	sf_json_text(json, "end", sf_end_word(thread->end));
	json_object_object_add(json, "frames", frames);
	for (size_t i = 0; i < thread->frames.n; i++)
		json_object_array_add(frames, frame_json(dump, &thread->frames.items[i]));
	return json;
}

static struct json_object *loss_json(const struct sf_dump_thread *thread)
{
	struct json_object *json = json_object_new_object();

	json_object_object_add(json, "tid", json_object_new_int(thread->seen.tid));
	sf_json_text(json, "cause", sf_loss_word((unsigned)thread->seen.loss));
	return json;
}

static struct json_object *circles_json(const struct sf_dump *dump)
{
	struct json_object *circles = json_object_new_array();

	for (size_t i = 0; i < dump->circles.n; i++)
		json_object_array_add(circles, circle_json(dump, &dump->circles.items[i]));
	return circles;
}

/* With their stacks, or as losses. */
static void add_threads(const struct sf_dump *dump, struct json_object *json)
{
	struct json_object *threads = json_object_new_array(), *losses = json_object_new_array();

	json_object_object_add(json, "threads", threads);
	json_object_object_add(json, "losses", losses);
	for (size_t i = 0; i < dump->threads.n; i++) {
		const struct sf_dump_thread *thread = &dump->threads.items[i];

		if (thread->seen.loss >= 0)
			json_object_array_add(losses, loss_json(thread));
		else
			json_object_array_add(threads, thread_json(dump, thread));
	}
}

void sf_dump_print_json(const struct sf_dump *dump, FILE *out)
{
	struct json_object *json = json_object_new_object();

	sf_json_number(json, "version", 1);
	json_object_object_add(json, "pid", json_object_new_int(dump->pid));
	sf_json_text(json, "name", dump->name);
	if (dump->frozen)
		json_object_object_add(json, "frozen", json_object_new_boolean(true));
	if (dump->tracer)
		json_object_object_add(json, "tracer_pid", json_object_new_int(dump->tracer));
	if (dump->note)
		sf_json_text(json, "note", dump->note);
	sf_json_text(json, "engine", dump->engine->name);
	sf_json_number(json, "looking_ns", dump->cost.looking_ns);
	sf_json_number(json, "longest_hold_ns", dump->cost.longest_hold_ns);
	json_object_object_add(json, "circles", circles_json(dump));
	add_threads(dump, json);
	fprintf(out, "%s\n", json_object_to_json_string_ext(json, JSON_C_TO_STRING_PRETTY));
	json_object_put(json);
}
