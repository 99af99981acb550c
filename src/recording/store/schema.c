/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The schema is two lists of SQL text, tables and views, and one list of words for the numbers
 * in them. Times are nanoseconds from the recording's start, addresses are those in the module's
 * file. SQLite's integers are signed: an address of the upper half reads as a negative number, and
 * printf('0x%x', address) shows it as it is.
 */
#include "recording/store/schema.h"

#include <stdio.h>
#include <string.h>

#include "frozen/ends.h"
#include "frozen/still.h"
#include "frozen/trace.h"
#include "recording/store/database.h"

struct item {
	const char *name;
	const char *sql;
};

static const struct item tables[] = {
	{ "session", "CREATE TABLE session(\n"
	  "  id INTEGER PRIMARY KEY,      -- always 1\n"
	  "  command TEXT NOT NULL,\n"
	  "  engine TEXT NOT NULL,\n"
	  "  host TEXT NOT NULL,\n"
	  "  version TEXT NOT NULL,       -- of stillframe\n"
	  "  architecture TEXT NOT NULL,\n"
	  "  start_unix_ns INTEGER NOT NULL,\n"
	  "  start_monotonic_ns INTEGER NOT NULL,\n"
	  "  duration_ns INTEGER NOT NULL,\n"
	  "  rate_mhz INTEGER NOT NULL,   -- wanted ticks per second, in thousandths\n"
	  "  blocked_rate_mhz INTEGER NOT NULL,\n"
	  "  complete INTEGER NOT NULL    -- 1: ended in order, names are in\n"
	  ")" },
	{ "measures", "CREATE TABLE measures(\n"
	  "  id INTEGER PRIMARY KEY,      -- always 1: there is one measure, or none\n"
	  "  name TEXT NOT NULL,          -- what samples count beside time: an event\n"
	  "  unit TEXT NOT NULL,          -- of its amounts: events, bytes\n"
	  "  counted INTEGER              -- how much there was in all; NULL: it was not counted to the end\n"
	  ")" },
	{ "processes", "CREATE TABLE processes(\n"
	  "  id INTEGER PRIMARY KEY,\n"
	  "  pid INTEGER NOT NULL,\n"
	  "  parent INTEGER NOT NULL,     -- pid of the parent\n"
	  "  name TEXT NOT NULL,\n"
	  "  command_line TEXT NOT NULL,\n"
	  "  start_ns INTEGER NOT NULL    -- first seen\n"
	  ")" },
	{ "threads", "CREATE TABLE threads(\n"
	  "  id INTEGER PRIMARY KEY,\n"
	  "  process INTEGER NOT NULL,    -- processes.id\n"
	  "  tid INTEGER NOT NULL,\n"
	  "  name TEXT NOT NULL,          -- the last one it had\n"
	  "  start_ns INTEGER NOT NULL,   -- first seen\n"
	  "  end_ns INTEGER,              -- NULL: was there to the end\n"
	  "  cpu_counted_ns INTEGER NOT NULL -- by the kernel, while it was watched\n"
	  ")" },
	{ "modules", "CREATE TABLE modules(\n"
	  "  id INTEGER PRIMARY KEY,\n"
	  "  path TEXT NOT NULL,\n"
	  "  build_id TEXT NOT NULL,      -- hex, or ''\n"
	  "  note TEXT NOT NULL           -- what is missing, or ''\n"
	  ")" },
	{ "frames", "CREATE TABLE frames(\n"
	  "  id INTEGER PRIMARY KEY,\n"
	  "  kind INTEGER NOT NULL,       -- kinds.id\n"
	  "  module INTEGER NOT NULL,     -- modules.id, or 0\n"
	  "  address INTEGER NOT NULL,    -- to look up: inside the call for a caller\n"
	  "  exact INTEGER NOT NULL,      -- 0: the return address is address + 1\n"
	  "  via INTEGER NOT NULL,        -- vias.id\n"
	  "  label TEXT NOT NULL          -- of a wait or a cut, or ''\n"
	  ")" },
	{ "functions", "CREATE TABLE functions(\n"
	  "  id INTEGER PRIMARY KEY,\n"
	  "  name TEXT NOT NULL,\n"
	  "  linkage TEXT NOT NULL,       -- as the linker sees it\n"
	  "  file TEXT NOT NULL,          -- source file, or ''\n"
	  "  module INTEGER NOT NULL\n"
	  ")" },
	{ "frame_functions", "CREATE TABLE frame_functions(\n"
	  "  frame INTEGER NOT NULL,      -- frames.id\n"
	  "  seq INTEGER NOT NULL,        -- 0: the innermost\n"
	  "  function INTEGER NOT NULL,   -- functions.id\n"
	  "  line INTEGER NOT NULL,       -- 0: unknown\n"
	  "  inlined INTEGER NOT NULL,    -- 1: into the next one\n"
	  "  approximate INTEGER NOT NULL,-- 1: calls that are inlined here may be missing\n"
	  "  PRIMARY KEY(frame, seq)\n"
	  ") WITHOUT ROWID" },
	{ "stacks", "CREATE TABLE stacks(\n"
	  "  id INTEGER PRIMARY KEY,\n"
	  "  parent INTEGER NOT NULL,     -- stacks.id of the caller, smaller; 0: none\n"
	  "  frame INTEGER NOT NULL       -- frames.id\n"
	  ")" },
	{ "samples", "CREATE TABLE samples(\n"
	  "  id INTEGER PRIMARY KEY,\n"
	  "  time_ns INTEGER NOT NULL,\n"
	  "  thread INTEGER NOT NULL,     -- threads.id\n"
	  "  stack INTEGER NOT NULL,      -- stacks.id, or 0: nothing is known\n"
	  "  cpu_ns INTEGER NOT NULL,     -- CPU time that it stands for\n"
	  "  wall_ns INTEGER NOT NULL,    -- elapsed time that it stands for\n"
	  "  amount INTEGER NOT NULL,     -- of the measure, that it stands for; 0: it is of a clock\n"
	  "  ticks INTEGER NOT NULL,\n"
	  "  state INTEGER NOT NULL,      -- states.id\n"
	  "  \"end\" INTEGER NOT NULL,      -- ends.id: how the walk ended\n"
	  "  unheld INTEGER NOT NULL,     -- 1: the thread was never interrupted for it\n"
	  "  syscall INTEGER NOT NULL,    -- number; -1: none; -2: a page fault\n"
	  "  label INTEGER,               -- labels.id; NULL: it has none\n"
	  "  second_label INTEGER         -- labels.id of another one; NULL: it has none\n"
	  ")" },
	{ "labels", "CREATE TABLE labels(\n"
	  "  id INTEGER PRIMARY KEY,\n"
	  "  key TEXT NOT NULL,\n"
	  "  value TEXT NOT NULL\n"
	  ")" },
	{ "notes", "CREATE TABLE notes(\n"
	  "  id INTEGER PRIMARY KEY,\n"
	  "  pid INTEGER NOT NULL,        -- of the process that it is about, or 0\n"
	  "  text TEXT NOT NULL           -- what the user should read\n"
	  ")" },
	{ "losses", "CREATE TABLE losses(\n"
	  "  thread INTEGER NOT NULL,     -- threads.id, or 0: of no known thread\n"
	  "  cause INTEGER NOT NULL,      -- causes.id\n"
	  "  ticks INTEGER NOT NULL,\n"
	  "  cpu_ns INTEGER NOT NULL,\n"
	  "  wall_ns INTEGER NOT NULL,\n"
	  "  amount INTEGER NOT NULL,\n"
	  "  PRIMARY KEY(thread, cause)\n"
	  ") WITHOUT ROWID" },
	{ "holds", "CREATE TABLE holds(\n"
	  "  up_to_ns INTEGER PRIMARY KEY,-- and longer than the row before\n"
	  "  count INTEGER NOT NULL\n"
	  ")" },
};

static const struct item views[] = {
	{ "thread_names", "CREATE VIEW thread_names AS\n"
	  "SELECT t.id AS thread, p.pid, t.tid, t.name, p.name AS process\n"
	  "FROM threads t JOIN processes p ON p.id = t.process" },

	/* A row per function of a frame. All frames of a module that nothing names have one name, as in a profile. */
	{ "frame_names", "CREATE VIEW frame_names AS\n"
	  "SELECT f.id AS frame, ff.seq, fn.id AS function, fn.name, fn.file, ff.line, ff.inlined,\n"
	  "       m.path AS module, ff.approximate\n"
	  "FROM frames f JOIN frame_functions ff ON ff.frame = f.id\n"
	  "JOIN functions fn ON fn.id = ff.function LEFT JOIN modules m ON m.id = f.module\n"
	  "UNION ALL\n"
	  "SELECT f.id, 0, -f.id, CASE WHEN f.label <> '' THEN f.label\n"
	  "       WHEN coalesce(m.path, '') = '' THEN '[unknown, in no file]'\n"
	  "       ELSE '[unknown in ' || trim(replace(m.path, rtrim(m.path, replace(m.path, '/', '')), ''), '[]')\n"
	  "            || ']' END, '', 0, 0, m.path, 0\n"
	  "FROM frames f LEFT JOIN modules m ON m.id = f.module\n"
	  "WHERE NOT EXISTS (SELECT 1 FROM frame_functions ff WHERE ff.frame = f.id)" },

	{ "stack_times", "CREATE VIEW stack_times AS\n"
	  "SELECT stack, count(*) AS samples, sum(cpu_ns) AS cpu_ns, sum(wall_ns) AS wall_ns,\n"
	  "       sum(amount) AS amount\n"
	  "FROM samples GROUP BY stack" },

	/* Every frame of every stack that has samples; depth 0 is the innermost. */
	{ "stack_frames", "CREATE VIEW stack_frames AS\n"
	  "WITH RECURSIVE path(stack, depth, node) AS (\n"
	  "  SELECT DISTINCT stack, 0, stack FROM samples WHERE stack <> 0\n"
	  "  UNION ALL\n"
	  "  SELECT p.stack, p.depth + 1, s.parent FROM path p JOIN stacks s ON s.id = p.node\n"
	  "  WHERE s.parent <> 0)\n"
	  "SELECT p.stack, p.depth, s.frame FROM path p JOIN stacks s ON s.id = p.node" },

	{ "self_times", "CREATE VIEW self_times AS\n"
	  "SELECT n.name, n.module, sum(t.samples) AS samples, sum(t.cpu_ns) AS cpu_ns,\n"
	  "       sum(t.wall_ns) AS wall_ns, sum(t.amount) AS amount\n"
	  "FROM stack_times t JOIN stacks s ON s.id = t.stack\n"
	  "JOIN frame_names n ON n.frame = s.frame AND n.seq = 0\n"
	  "GROUP BY n.name, n.module" },

	/* A function that is on a stack several times counts once. */
	{ "total_times", "CREATE VIEW total_times AS\n"
	  "SELECT o.name, o.module, sum(t.samples) AS samples, sum(t.cpu_ns) AS cpu_ns,\n"
	  "       sum(t.wall_ns) AS wall_ns, sum(t.amount) AS amount\n"
	  "FROM (SELECT DISTINCT f.stack, n.name, n.module\n"
	  "      FROM stack_frames f JOIN frame_names n ON n.frame = f.frame) o\n"
	  "JOIN stack_times t ON t.stack = o.stack\n"
	  "GROUP BY o.name, o.module" },

	{ "thread_times", "CREATE VIEW thread_times AS\n"
	  "SELECT n.*, count(s.id) AS samples, coalesce(sum(s.cpu_ns), 0) AS cpu_ns,\n"
	  "       coalesce(sum(s.wall_ns), 0) AS wall_ns, coalesce(sum(s.amount), 0) AS amount,\n"
	  "       t.cpu_counted_ns\n"
	  "FROM thread_names n JOIN threads t ON t.id = n.thread\n"
	  "LEFT JOIN samples s ON s.thread = n.thread GROUP BY n.thread" },

	{ "state_times", "CREATE VIEW state_times AS\n"
	  "SELECT w.word AS state, count(*) AS samples, sum(s.cpu_ns) AS cpu_ns,\n"
	  "       sum(s.wall_ns) AS wall_ns, sum(s.amount) AS amount\n"
	  "FROM samples s JOIN states w ON w.id = s.state GROUP BY s.state" },

	/* Samples without a label are in none of its rows, and samples with two in two. */
	{ "label_times", "CREATE VIEW label_times AS\n"
	  "SELECT l.key, l.value, count(*) AS samples, sum(s.cpu_ns) AS cpu_ns,\n"
	  "       sum(s.wall_ns) AS wall_ns, sum(s.amount) AS amount\n"
	  "FROM samples s JOIN labels l ON l.id IN (s.label, s.second_label) GROUP BY l.id" },

	{ "loss_totals", "CREATE VIEW loss_totals AS\n"
	  "SELECT c.word AS cause, c.text, sum(l.ticks) AS ticks, sum(l.cpu_ns) AS cpu_ns,\n"
	  "       sum(l.wall_ns) AS wall_ns, sum(l.amount) AS amount\n"
	  "FROM losses l JOIN causes c ON c.id = l.cause GROUP BY l.cause" },

	{ "accounting", "CREATE VIEW accounting AS\n"
	  "SELECT sample_ticks + lost_ticks AS ticks, *\n"
	  "FROM (SELECT coalesce(sum(ticks), 0) AS sample_ticks,\n"
	  "             coalesce(sum(cpu_ns), 0) AS cpu_seen_ns, coalesce(sum(amount), 0) AS amount_seen FROM samples),\n"
	  "     (SELECT coalesce(sum(ticks), 0) AS lost_ticks,\n"
	  "             coalesce(sum(cpu_ns), 0) AS cpu_lost_ns, coalesce(sum(amount), 0) AS amount_lost FROM losses),\n"
	  "     (SELECT (SELECT coalesce(sum(cpu_counted_ns), 0) FROM threads) +\n"
	  "             (SELECT coalesce(sum(l.cpu_ns), 0) FROM losses l JOIN causes c ON c.id = l.cause\n"
	  "              WHERE c.word = 'unseen') AS cpu_counted_ns,\n"
	  "             (SELECT counted FROM measures) AS amount_counted)" },
};

/* The numbers that enums leave in the tables, with their words: tables of (id, word, text). */
static const struct word {
	const char *table;
	int id;
	const char *word, *text;
} words[] = {
#define X(name, word, text) { "states", SF_STATE_##name, word, text },
	SF_STATES(X)
#undef X
#define X(name, word, text) { "ends", SF_END_##name, word, text },
	SF_ENDS(X)
#undef X
#define X(name, word, text) { "causes", SF_LOSS_##name, word, text },
	SF_LOSSES(X)
#undef X
#define X(name, word, text) { "vias", SF_VIA_##name, word, text },
	SF_VIAS(X)
#undef X
#define X(name, word, text) { "kinds", SF_KIND_##name, word, text },
	SF_KINDS(X)
#undef X
};

static const char *const word_tables[] = { "states", "ends", "causes", "vias", "kinds" };

#define N_ELEMENTS(array) (sizeof(array) / sizeof((array)[0]))

static bool create_items(sqlite3 *db, const struct item *items, size_t n, struct sf_error *err)
{
	for (size_t i = 0; i < n; i++) {
		if (!sf_database_run(db, items[i].sql, err))
			return false;
	}
	return true;
}

static bool create_words(sqlite3 *db, struct sf_error *err)
{
	char sql[256];

	for (size_t i = 0; i < N_ELEMENTS(word_tables); i++) {
		snprintf(sql, sizeof(sql),
			 "CREATE TABLE %s(id INTEGER PRIMARY KEY, word TEXT NOT NULL, "
			 "text TEXT NOT NULL)", word_tables[i]);
		if (!sf_database_run(db, sql, err))
			return false;
	}
	for (size_t i = 0; i < N_ELEMENTS(words); i++) {
		sqlite3_snprintf(sizeof(sql), sql, "INSERT INTO %s VALUES(%d, %Q, %Q)",
				 words[i].table, words[i].id, words[i].word, words[i].text);
		if (!sf_database_run(db, sql, err))
			return false;
	}
	return true;
}

bool sf_schema_create(sqlite3 *db, struct sf_error *err)
{
	char sql[96];

	snprintf(sql, sizeof(sql), "PRAGMA application_id = %d; PRAGMA user_version = %d",
		 SF_APPLICATION_ID, SF_SCHEMA_VERSION);
	return sf_database_run(db, sql, err) && create_words(db, err) &&
	       create_items(db, tables, N_ELEMENTS(tables), err) &&
	       create_items(db, views, N_ELEMENTS(views), err);
}

static bool check_table(sqlite3 *db, const struct item *table, const char *path,
			struct sf_error *err)
{
	static const char sql[] = "SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = ? AND sql = ?";
	SF_CLEANUP(sqlite3_finalize) sqlite3_stmt *query = NULL;

	if (!sf_database_prepare(db, sql, &query, err))
		return false;
	sqlite3_bind_text(query, 1, table->name, -1, SQLITE_STATIC);
	sqlite3_bind_text(query, 2, table->sql, -1, SQLITE_STATIC);
	switch (sqlite3_step(query)) {
	case SQLITE_ROW:
		return true;
	case SQLITE_DONE:
		return sf_fail(err, SF_E_INPUT, "%s is damaged: its table %s is not as stillframe "
			       "makes it", path, table->name);
	default:
		return sf_database_fail(db, err);
	}
}

static bool check_version(int64_t version, const char *path, struct sf_error *err)
{
	if (version == SF_SCHEMA_VERSION)
		return true;
	sf_fail(err, SF_E_INPUT, "%s is a recording of version %lld; this stillframe reads version %d",
		path, (long long)version, SF_SCHEMA_VERSION);
	return sf_fail_hint(err, "Open it with the stillframe that wrote it.");
}

bool sf_schema_check(sqlite3 *db, const char *path, struct sf_error *err)
{
	int64_t application, version;

	if (!sf_database_number(db, "PRAGMA application_id", &application, err) ||
	    !sf_database_number(db, "PRAGMA user_version", &version, err))
		return false;
	if (application != SF_APPLICATION_ID)
		return sf_fail(err, SF_E_INPUT, "%s is not a recording of stillframe", path);
	if (!check_version(version, path, err))
		return false;
	for (size_t i = 0; i < N_ELEMENTS(tables); i++) {
		if (!check_table(db, &tables[i], path, err))
			return false;
	}
	return true;
}
