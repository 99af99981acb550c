/* SPDX-License-Identifier: Apache-2.0 */
/* The list of engines, the choice of one, and which options are for which. */
#include "capture/choice/engines.h"

#include <stdio.h>
#include <string.h>

#include "elf/program.h"
#include "os/process.h"

const struct sf_engine *const sf_engines[] = {
#define X(name) &sf_engine_##name,
	SF_ENGINES(X)
#undef X
	NULL,
};

const struct sf_engine *sf_engine_by_name(const char *name)
{
	for (const struct sf_engine *const *engine = sf_engines; *engine; engine++) {
		if (strcmp((*engine)->name, name) == 0)
			return *engine;
	}
	return NULL;
}

const struct sf_engine *sf_engine_of_runtimes(void)
{
	for (const struct sf_engine *const *engine = sf_engines; *engine; engine++) {
		if ((*engine)->has_runtime)
			return *engine;
	}
	return NULL;
}

/* --- choosing one --- */

/* As the user names it. */
static const char *name_of(const struct sf_engine *engine, const struct sf_capture_options *options)
{
	return options->runtime ? options->runtime : engine->name;
}

static bool reaches(const struct sf_engine *engine, const struct sf_capture_options *options, struct sf_error *err)
{
	if (options->all && engine->reach < SF_REACHES_ALL)
		return sf_fail(err, SF_E_UNSUPPORTED, "the engine %s cannot sample %s", name_of(engine, options), options->cgroup ? "a control group" : "all processes");
	if (options->filter && !(engine->yields & SF_YIELDS_STILLS))
		return sf_fail(err, SF_E_UNSUPPORTED, "the engine %s has no --filter", name_of(engine, options));
	if (options->n_more && engine->reach < SF_REACHES_SEVERAL)
		return sf_fail(err, SF_E_UNSUPPORTED, "the engine %s samples one process at a time", engine->name);
	return true;
}

static bool takes(const struct sf_engine *engine, const char *name)
{
	for (const struct sf_option *option = engine->options; option && option->name; option++) {
		if (strcmp(option->name, name) == 0)
			return true;
	}
	return false;
}

/* Whether the event is one of those of an engine that names its own. */
static bool is_named_event(const char *event)
{
	for (size_t i = 0; sf_engines[i]; i++) {
		if (sf_engines[i]->has_event && sf_engines[i]->has_event(event))
			return true;
	}
	return false;
}

/* Another option of an engine that is not chosen is left out of account; an event is what is to be recorded. */
static bool has_event(const struct sf_engine *engine, const struct sf_setting *settings)
{
	const char *event = sf_setting_event(settings);

	if (!event)
		return true;
	return takes(engine, SF_SETTING_EVENT) && (engine->has_event ? engine->has_event(event) : !is_named_event(event));
}

static bool works_for(const struct sf_engine *engine, const struct sf_capture_options *options, int32_t pid, struct sf_error *err)
{
	const char *event = sf_setting_event(options->settings);

	return (!options->runtime || engine->has_runtime(pid, options->runtime, err)) &&
	       (!event || !engine->event_is_in || engine->event_is_in(event, pid, err)) && engine->check(pid, err);
}

static bool is_outside(const struct sf_engine *engine)
{
	return strcmp(engine->from, "outside") == 0;
}

/* musl's loader ends a program into which it cannot load a library: the command would not run at all. */
static bool may_load_agent(const struct sf_engine *engine, const struct sf_capture_options *options, struct sf_error *err)
{
	struct sf_program_file file;

	if (is_outside(engine) || !sf_program_look_named(options->program, &file) || !file.has_musl)
		return true;
	sf_fail(err, SF_E_UNSUPPORTED, "cannot sample %s from inside: it is linked with the C library musl, and the agent with glibc",
		options->program);
	return sf_fail_hint(err, "From outside: --engine ptrace, where that is allowed.");
}

static bool works(const struct sf_engine *engine, const struct sf_capture_options *options, struct sf_error *err)
{
	if (!has_event(engine, options->settings))
		return sf_fail(err, SF_E_UNSUPPORTED, "the engine %s has no --" SF_SETTING_EVENT " %s", engine->name, sf_setting_event(options->settings));
	if (!reaches(engine, options, err))
		return false;
	if (options->child && !may_load_agent(engine, options, err))
		return false;
	if (options->child)
		return engine->try_child ? engine->try_child(options->child, err) : engine->check(0, err);
	if (options->all)
		return engine->check(SF_ALL_PROCESSES, err);
	for (size_t i = 0; i < sf_capture_n_pids(options); i++) {
		if (!works_for(engine, options, sf_capture_pid(options, i), err))
			return i ? sf_fail_hint(err, "Or leave it out of -p.") : false; /* those before it may be watched */
	}
	return true;
}

/* Of a child its program is known. With its descendants, a 32-bit program is a loss among others. */
static bool check_width(const struct sf_capture_options *options, struct sf_error *err)
{
	struct sf_program_file file;

	if (options->children)
		return true;
	if (options->child)
		return !sf_program_look_named(options->program, &file) || !file.elf || file.is_64_bit ||
		       sf_fail_32_bit(options->program, 0, err);
	for (size_t i = 0; i < sf_capture_n_pids(options); i++) {
		if (!sf_process_check_width(sf_capture_pid(options, i), err))
			return false;
	}
	return true;
}

/* Nothing is tried on the child of the user's choice: if that engine does not work there, run() says so. */
static const struct sf_engine *choose_named(const struct sf_engine *named, const struct sf_capture_options *options,
					    struct sf_error *err)
{
	if (options->child && named->try_child)
		return named;
	return works(named, options, err) ? named : NULL;
}

static bool is_limited(const struct sf_engine *engine, const struct sf_capture_options *options, struct sf_error *why)
{
	return engine->is_limited && !options->all && engine->is_limited(options->child ? options->child : options->pid, why);
}

/* Whether the event is one that only this engine has. */
static bool is_alone(const struct sf_engine *engine, const struct sf_capture_options *options)
{
	const char *event = sf_setting_event(options->settings);

	return event && engine->has_event && engine->has_event(event);
}

/* Whether the reason for which it does not work is worth more than that of the engines before it. */
static bool explains(const struct sf_engine *engine, const struct sf_capture_options *options)
{
	return is_alone(engine, options) || (is_outside(engine) && !options->all && has_event(engine, options->settings));
}

/*
 * The best engine that works and is not limited, else the best that works. NULL: none works. *first_ret has the reason
 * for which the first engine was passed over. *last_ret has the reason of the last engine outside that does not work,
 * and so needs the least; of all processes it is the first; of an event that one engine alone has, it is this engine.
 */
static const struct sf_engine *choose_best(const struct sf_capture_options *options, struct sf_error *first_ret,
					   struct sf_error *last_ret)
{
	const struct sf_engine *limited = NULL;

	for (size_t i = 0; sf_engines[i]; i++) {
		struct sf_error why = { 0 };
		const bool fine = works(sf_engines[i], options, &why);

		if (fine && !is_limited(sf_engines[i], options, &why))
			return sf_engines[i];
		if (i == 0)
			*first_ret = why;
		if (fine)
			limited = limited ? limited : sf_engines[i];
		else if (i == 0 || explains(sf_engines[i], options))
			*last_ret = why;
	}
	return limited;
}

/* An engine says itself in which way it is limited; of an event no other engine was to be had. */
const struct sf_engine *sf_engine_choose(const struct sf_engine *named, const struct sf_capture_options *options,
					 struct sf_error *passed, struct sf_error *err)
{
	struct sf_error first = { 0 }, last = { 0 }, limits;
	const struct sf_engine *chosen;

	*passed = (struct sf_error){ 0 };
	if (!check_width(options, err))
		return NULL;
	if (named)
		return choose_named(named, options, err);
	chosen = choose_best(options, &first, &last);
	if (!chosen)
		*err = last;
	else if (!is_outside(chosen) && !is_alone(chosen, options))
		*passed = last;
	else if (is_outside(chosen) && !is_limited(chosen, options, &limits))
		*passed = first;
	else if (!sf_setting_event(options->settings))
		*passed = last;
	return chosen;
}

/* The first of those that dump with holds, or without; err is filled by the first that cannot, if it is empty. */
static const struct sf_engine *find_for_dump(int32_t pid, bool unheld, struct sf_error *err)
{
	for (size_t i = 0; sf_engines[i]; i++) {
		struct sf_error later = { 0 };

		if (!sf_engines[i]->check_dump || sf_engines[i]->dumps_unheld != unheld)
			continue;
		if (sf_engines[i]->check_dump(pid, *err->text ? &later : err))
			return sf_engines[i];
	}
	return NULL;
}

static const struct sf_engine *named_for_dump(const struct sf_engine *named, int32_t pid, struct sf_error *err)
{
	if (!named->check_dump) {
		sf_fail(err, SF_E_UNSUPPORTED, "the engine %s cannot show all threads at once", named->name);
		return NULL;
	}
	return named->check_dump(pid, err) ? named : NULL;
}

const struct sf_engine *sf_engine_for_dump(const struct sf_engine *named, int32_t pid, struct sf_error *passed,
					   struct sf_error *err)
{
	const struct sf_engine *engine = NULL;

	*passed = (struct sf_error){ 0 };
	if (!sf_process_check_width(pid, err))
		return NULL;
	if (named)
		return named_for_dump(named, pid, err);
	engine = find_for_dump(pid, true, passed);
	return engine ? engine : find_for_dump(pid, false, err);
}

/* --- options --- */

/* Whether an engine in front of the i-th takes it, too. */
static bool is_listed(size_t i, const char *name)
{
	while (i-- > 0) {
		if (takes(sf_engines[i], name))
			return true;
	}
	return false;
}

size_t sf_engine_options(const struct sf_option *ret[SF_MAX_SETTINGS])
{
	size_t n = 0;

	for (size_t i = 0; sf_engines[i]; i++) {
		for (const struct sf_option *option = sf_engines[i]->options; option && option->name; option++) {
			if (n < SF_MAX_SETTINGS && !is_listed(i, option->name))
				ret[n++] = option;
		}
	}
	return n;
}

/* Whether the engine can do something with this setting. */
static bool accepts(const struct sf_engine *engine, const struct sf_setting *setting)
{
	const bool is_event = strcmp(setting->name, SF_SETTING_EVENT) == 0;

	return takes(engine, setting->name) && (!is_event || has_event(engine, setting));
}

static bool refuse(const struct sf_setting *setting, const struct sf_engine *named, struct sf_error *err)
{
	const bool is_event = strcmp(setting->name, SF_SETTING_EVENT) == 0;
	char names[128] = "";
	size_t used = 0;

	for (size_t i = 0; sf_engines[i]; i++) {
		if (accepts(sf_engines[i], setting) && used < sizeof(names))
			used += (size_t)snprintf(names + used, sizeof(names) - used, "%s%s",
						 used ? " or " : "", sf_engines[i]->name);
	}
	return sf_fail(err, SF_E_INPUT, "--%s%s%.60s is for --engine %s%s%s", setting->name, is_event ? " " : "", is_event ? setting->value : "", names,
		       named ? ", not " : " only", named ? named->name : "");
}

/* The event of another engine is nothing that an engine can check. */
static bool check_own(const struct sf_engine *engine, const struct sf_setting *settings, struct sf_error *err)
{
	struct sf_setting own[SF_MAX_SETTINGS + 1] = { { NULL, NULL } };
	size_t n = 0;

	for (; settings->name && n < SF_MAX_SETTINGS; settings++) {
		if (strcmp(settings->name, SF_SETTING_EVENT) != 0 || has_event(engine, settings))
			own[n++] = *settings;
	}
	own[n] = (struct sf_setting){ NULL, NULL };
	return !engine->check_settings || engine->check_settings(own, err);
}

bool sf_engine_check_settings(const struct sf_engine *named, const struct sf_setting *settings,
			      struct sf_error *err)
{
	for (size_t i = 0; sf_engines[i]; i++) {
		if (!check_own(sf_engines[i], settings, err))
			return false;
	}
	for (; settings->name; settings++) {
		const bool is_event = strcmp(settings->name, SF_SETTING_EVENT) == 0;
		const bool is_fine = named || !is_event ? accepts(named ? named : sf_engines[0], settings) : true;

		if (settings->value && !is_fine)
			return refuse(settings, named, err);
	}
	return true;
}
