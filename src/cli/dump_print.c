/* SPDX-License-Identifier: Apache-2.0 */
/* Prints a dump as text or JSON. */
#include "cli/dump_print.h"

#include <inttypes.h>
#include <json-c/json.h>
#include <stdlib.h>
#include <string.h>

#include "base/output.h"
#include "frozen/ends.h"

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

static void print_place(const struct sf_output *output, const struct sf_dump *dump,
			const struct sf_dump_frame *frame)
{
	const char *file = sf_dump_string(dump, frame->file);

	fputs(sf_colour(output, SF_DIM), output->file);
	if (*file && frame->line)
		fprintf(output->file, "  %s:%u", base_name(file), frame->line);
	else if (*file)
		fprintf(output->file, "  %s", base_name(file));
	else if (frame->image)
		fprintf(output->file, "  (%s)", base_name(sf_dump_path(dump, frame->image)));
	fputs(sf_colour(output, SF_PLAIN), output->file);
}

/* How the frame was found, where that is not by the file's own rules. */
static const char *remark(const struct sf_dump_frame *frame)
{
	if (frame->approximate)
		return "  [inlined calls uncertain]";
	switch (frame->via) {
	case SF_VIA_FRAME_POINTER:
		return "  [by frame pointer]";
	case SF_VIA_GUESS:
		return "  [guessed]";
	case SF_VIA_ANCHOR:
		return "  [native frames may be missing below]";
	case SF_VIA_INFERRED:
		return "  [inferred]";
	case SF_VIA_SIGNAL:
		return "  [interrupted by a signal]";
	default:
		return "";
	}
}

static void print_frame(const struct sf_output *output, const struct sf_dump *dump, size_t number,
			const struct sf_dump_frame *frame, bool kinds)
{
	const char *function = sf_dump_string(dump, frame->function);

	fprintf(output->file, "  %s#%-3zu%s", sf_colour(output, SF_DIM), number,
		sf_colour(output, SF_PLAIN));
	if (*function)
		fputs(function, output->file);
	else
		fprintf(output->file, "0x%" PRIx64, frame->image ? frame->address : frame->pc);
	if (frame->inlined)
		fprintf(output->file, "%s  inlined%s", sf_colour(output, SF_CYAN),
			sf_colour(output, SF_PLAIN));
	if (kinds && sf_kind_is_managed(frame->kind))
		fprintf(output->file, "%s  [%s]%s", sf_colour(output, SF_CYAN),
			sf_kind_word(frame->kind), sf_colour(output, SF_PLAIN));
	print_place(output, dump, frame);
	fprintf(output->file, "%s%s%s\n", sf_colour(output, SF_YELLOW), remark(frame),
		sf_colour(output, SF_PLAIN));
}

static void print_state(const struct sf_output *output, const struct sf_dump_thread *thread)
{
	fprintf(output->file, "%s%s%s",
		sf_colour(output, thread->state == SF_STATE_RUNNING ? SF_GREEN : SF_BLUE),
		sf_state_word(thread->state), sf_colour(output, SF_PLAIN));
	if (thread->wait[0])
		fprintf(output->file, " in %s", thread->wait);
	if (thread->detail[0]) {
		fputs(": ", output->file);
		fputs(thread->detail, output->file);
	}
}

static void print_thread(const struct sf_output *output, const struct sf_dump *dump,
			 const struct sf_dump_thread *thread, const struct sf_dump_look *look)
{
	char time[32];

	fprintf(output->file, "\n%s%d ", sf_colour(output, SF_BOLD), thread->tid);
	fputs(thread->name, output->file);
	fprintf(output->file, "%s  ", sf_colour(output, SF_PLAIN));
	print_state(output, thread);
	if (look->times)
		fprintf(output->file, "  %s%s", thread->held_ns ? "held " : "not held",
			thread->held_ns ? sf_format_time(time, thread->held_ns) : "");
	fputc('\n', output->file);
	if (thread->loss >= 0) {
		fprintf(output->file, "  %sno stack: %s%s\n", sf_colour(output, SF_RED),
			sf_loss_text((unsigned)thread->loss), sf_colour(output, SF_PLAIN));
		return;
	}
	for (size_t i = 0; i < thread->frames.n; i++)
		print_frame(output, dump, i, &thread->frames.items[i], look->split_kinds);
	if (thread->end != SF_END_ROOT)
		fprintf(output->file, "  %scut: %s%s\n", sf_colour(output, SF_RED),
			sf_end_text(thread->end), sf_colour(output, SF_PLAIN));
}

void sf_dump_print(const struct sf_dump *dump, const struct sf_dump_look *look, FILE *out)
{
	struct sf_output output = sf_output_for(out);
	char time[32];

	fprintf(out, "%sprocess %d ", sf_colour(&output, SF_BOLD), dump->pid);
	fputs(dump->name, out);
	fprintf(out, "%s, %zu thread%s", sf_colour(&output, SF_PLAIN), dump->threads.n,
		dump->threads.n == 1 ? "" : "s");
	if (dump->tracer) {
		fprintf(out, ", traced by ");
		fputs(dump->tracer_name, out);
		fprintf(out, " (pid %d)", dump->tracer);
	}
	fputc('\n', out);
	for (size_t i = 0; i < dump->threads.n; i++)
		print_thread(&output, dump, &dump->threads.items[i], look);
	if (dump->note) {
		fputs("\nnote: ", out);
		fputs(dump->note, out);
		fputc('\n', out);
	}
	if (!look->times)
		return;
	fprintf(out, "\nlooked at all threads in %s", sf_format_time(time, dump->cost.looking_ns));
	if (dump->cost.longest_hold_ns)
		fprintf(out, ", longest hold %s\n", sf_format_time(time, dump->cost.longest_hold_ns));
	else
		fprintf(out, ", held none\n");
}

static struct json_object *json_hex(uint64_t value)
{
	char text[24];

	snprintf(text, sizeof(text), "0x%" PRIx64, value);
	return json_object_new_string(text);
}

static struct json_object *json_frame(const struct sf_dump *dump, const struct sf_dump_frame *frame)
{
	struct json_object *json = json_object_new_object();

	json_object_object_add(json, "pc", json_hex(frame->pc));
	json_object_object_add(json, "function", json_object_new_string(sf_dump_string(dump, frame->function)));
	json_object_object_add(json, "module", json_object_new_string(sf_dump_path(dump, frame->image)));
	json_object_object_add(json, "address", json_hex(frame->address));
	json_object_object_add(json, "file", json_object_new_string(sf_dump_string(dump, frame->file)));
	json_object_object_add(json, "line", json_object_new_int64(frame->line));
	json_object_object_add(json, "inlined", json_object_new_boolean(frame->inlined));
	if (frame->approximate)
		json_object_object_add(json, "approximate", json_object_new_boolean(true));
	json_object_object_add(json, "via", json_object_new_string(sf_via_word(frame->via)));
	json_object_object_add(json, "kind", json_object_new_string(sf_kind_word(frame->kind)));
	return json;
}

static struct json_object *json_wait(const struct sf_dump_thread *thread)
{
	struct json_object *json;

	if (!thread->wait[0])
		return NULL;
	json = json_object_new_object();
	json_object_object_add(json, "syscall", json_object_new_string(thread->wait));
	json_object_object_add(json, "detail", json_object_new_string(thread->detail));
	return json;
}

static struct json_object *json_thread(const struct sf_dump *dump,
				       const struct sf_dump_thread *thread)
{
	struct json_object *json = json_object_new_object();
	struct json_object *frames = json_object_new_array();

	json_object_object_add(json, "tid", json_object_new_int(thread->tid));
	json_object_object_add(json, "name", json_object_new_string(thread->name));
	json_object_object_add(json, "state", json_object_new_string(sf_state_word(thread->state)));
	json_object_object_add(json, "wait", json_wait(thread));
	json_object_object_add(json, "held_ns", json_object_new_int64((int64_t)thread->held_ns));
	json_object_object_add(json, "unheld", json_object_new_boolean(thread->unheld));
	json_object_object_add(json, "end", json_object_new_string(sf_end_word(thread->end)));
	json_object_object_add(json, "frames", frames);
	for (size_t i = 0; i < thread->frames.n; i++)
		json_object_array_add(frames, json_frame(dump, &thread->frames.items[i]));
	return json;
}

static struct json_object *json_loss(const struct sf_dump_thread *thread)
{
	struct json_object *json = json_object_new_object();

	json_object_object_add(json, "tid", json_object_new_int(thread->tid));
	json_object_object_add(json, "cause",
			       json_object_new_string(sf_loss_word((unsigned)thread->loss)));
	return json;
}

void sf_dump_print_json(const struct sf_dump *dump, FILE *out)
{
	struct json_object *json = json_object_new_object();
	struct json_object *threads = json_object_new_array(), *losses = json_object_new_array();

	json_object_object_add(json, "version", json_object_new_int(1));
	json_object_object_add(json, "pid", json_object_new_int(dump->pid));
	json_object_object_add(json, "name", json_object_new_string(dump->name));
	if (dump->tracer)
		json_object_object_add(json, "tracer_pid", json_object_new_int(dump->tracer));
	if (dump->note)
		json_object_object_add(json, "note", json_object_new_string(dump->note));
	json_object_object_add(json, "engine", json_object_new_string(dump->engine->name));
	json_object_object_add(json, "looking_ns",
			       json_object_new_int64((int64_t)dump->cost.looking_ns));
	json_object_object_add(json, "longest_hold_ns",
			       json_object_new_int64((int64_t)dump->cost.longest_hold_ns));
	json_object_object_add(json, "threads", threads);
	json_object_object_add(json, "losses", losses);
	for (size_t i = 0; i < dump->threads.n; i++) {
		const struct sf_dump_thread *thread = &dump->threads.items[i];

		if (thread->loss >= 0)
			json_object_array_add(losses, json_loss(thread));
		else
			json_object_array_add(threads, json_thread(dump, thread));
	}
	fputs(json_object_to_json_string_ext(json, JSON_C_TO_STRING_PRETTY), out);
	fputc('\n', out);
	json_object_put(json);
}
