/* SPDX-License-Identifier: Apache-2.0 */
#include "fake_layout.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void copy_word(char *ret, size_t size, const char *word)
{
	snprintf(ret, size, "%s", word ? word : "");
}

static void add_line(struct fake_layout *layout, char *line)
{
	char *words[5] = { NULL }, *rest = line;

	line[strcspn(line, "\n")] = 0;
	for (unsigned i = 0; i < 5 && rest; i++)
		words[i] = strsep(&rest, "\t");
	if (strcmp(words[0], "field") == 0 && layout->n_fields < FAKE_FIELDS && words[3]) {
		struct fake_field *field = &layout->fields[layout->n_fields++];

		copy_word(field->type, sizeof(field->type), words[1]);
		copy_word(field->name, sizeof(field->name), words[2]);
		copy_word(field->text, sizeof(field->text), words[4]);
		field->is_static = strcmp(words[3], "static") == 0;
		field->offset = field->is_static ? 0 : strtoull(words[3], NULL, 10);
	} else if (strcmp(words[0], "field") != 0 && words[0][0] != '#' &&
		   layout->n_values < FAKE_VALUES && words[2]) {
		struct fake_value *value = &layout->values[layout->n_values++];

		value->is_size = strcmp(words[0], "size") == 0;
		copy_word(value->name, sizeof(value->name), words[1]);
		value->value = strtoull(words[2], NULL, 10);
	}
}

void fake_layout_read(struct fake_layout *layout, unsigned version)
{
	char path[256], line[256];
	FILE *file;

	*layout = (struct fake_layout){ 0 };
	snprintf(path, sizeof(path), SF_SOURCE_ROOT "/tests/unit/fixtures/hotspot-%u.txt", version);
	file = fopen(path, "r");
	if (!file)
		abort();
	while (fgets(line, sizeof(line), file))
		add_line(layout, line);
	fclose(file);
}

struct fake_field *fake_layout_field(struct fake_layout *layout, const char *type, const char *name)
{
	for (unsigned i = 0; i < layout->n_fields; i++) {
		struct fake_field *field = &layout->fields[i];

		if (strcmp(field->type, type) == 0 && strcmp(field->name, name) == 0)
			return field;
	}
	return NULL;
}

uint64_t fake_layout_value(const struct fake_layout *layout, const char *name)
{
	for (unsigned i = 0; i < layout->n_values; i++) {
		if (strcmp(layout->values[i].name, name) == 0)
			return layout->values[i].value;
	}
	return 0;
}

unsigned fake_layout_width(const struct fake_field *field)
{
	static const struct {
		const char *text;
		unsigned width;
	} widths[] = {
		{ "int", 4 }, { "const uint", 4 }, { "u4", 4 }, { "uint32_t", 4 }, { "pid_t", 4 },
		{ "OSThread::thread_id_t", 4 }, { "u2", 2 }, { "unsigned short", 2 },
		{ "int16_t", 2 }, { "bool", 1 }, { "CompLevel", 1 },
	};

	for (size_t i = 0; i < sizeof(widths) / sizeof(widths[0]); i++) {
		if (strcmp(widths[i].text, field->text) == 0)
			return widths[i].width;
	}
	return 8;
}

size_t fake_layout_room(const struct fake_layout *layout, const char *type, const char *base)
{
	size_t size = 16;

	for (unsigned i = 0; i < layout->n_fields; i++) {
		const struct fake_field *field = &layout->fields[i];

		if ((strcmp(field->type, type) == 0 || (base && strcmp(field->type, base) == 0)) &&
		    field->offset + 16 > size)
			size = field->offset + 16;
	}
	return size;
}
