/* SPDX-License-Identifier: Apache-2.0 */
#include "session/naming.h"

#include <stdlib.h>

#include "base/cleanup.h"

#define MAX_INLINED 64

struct naming {
	struct sf_recording *recording;
	uint32_t module;
	const uint64_t *addresses;
	struct sf_error *err;
	bool failed;
};

static void on_location(size_t index, const struct sf_location *locations, size_t n, void *arg)
{
	struct naming *naming = arg;
	struct sf_recording_name names[MAX_INLINED];

	if (naming->failed)
		return;
	if (n > MAX_INLINED) { /* the outermost is the function itself: keep it */
		locations += n - MAX_INLINED;
		n = MAX_INLINED;
	}
	for (size_t i = 0; i < n; i++) {
		names[i] = (struct sf_recording_name){
			.function = locations[i].function,
			.linkage = locations[i].linkage,
			.file = locations[i].file,
			.line = locations[i].line,
			.inlined = locations[i].inlined,
		};
	}
	naming->failed = !sf_recording_names(naming->recording, naming->module,
					     naming->addresses[index], names, n, naming->err);
}

bool sf_session_name_module(struct sf_recording *recording, struct sf_apart *apart,
			    uint32_t module, int fd, const char *path, struct sf_error *err)
{
	SF_CLEANUP(free) uint64_t *addresses = NULL;
	struct naming naming = { .recording = recording, .module = module, .err = err };
	size_t n;

	if (!sf_recording_unnamed(recording, module, &addresses, &n, err))
		return false;
	if (!n || fd < 0)
		return true;
	naming.addresses = addresses;
	sf_apart_resolve(apart, fd, path, addresses, n, on_location, &naming, NULL);
	return !naming.failed;
}

bool sf_session_note_names(struct sf_recording *recording, const struct sf_apart *apart,
			   struct sf_error *err)
{
	const char *note = sf_apart_note(apart);

	return !note || sf_recording_note(recording, 0, note, err);
}

bool sf_session_name_all(struct sf_recording *recording, struct sf_images *images,
			 const atomic_bool *stop, struct sf_error *err)
{
	struct sf_apart apart = sf_apart_begin(stop);

	for (uint32_t number = 1; number <= sf_images_count(images); number++) {
		const struct sf_image *image = sf_images_get(images, number);

		if (!sf_session_name_module(recording, &apart, number, image->fd, image->path, err))
			return false;
	}
	return sf_session_note_names(recording, &apart, err);
}
