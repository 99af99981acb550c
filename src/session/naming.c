/* SPDX-License-Identifier: Apache-2.0 */
#include "session/naming.h"

#include <stdlib.h>

#include "base/cleanup.h"
#include "symbols/symbols.h"

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

static bool name_image(struct sf_recording *recording, const struct sf_image *image,
		       struct sf_error *err)
{
	SF_CLEANUP(free) uint64_t *addresses = NULL;
	struct sf_symbols *symbols;
	struct naming naming = { .recording = recording, .module = image->number, .err = err };
	size_t n;

	if (!sf_recording_unnamed(recording, image->number, &addresses, &n, err))
		return false;
	if (!n || image->fd < 0 || !sf_symbols_open(image->fd, image->path, &symbols, NULL))
		return true;
	naming.addresses = addresses;
	sf_symbols_resolve(symbols, addresses, n, on_location, &naming, NULL);
	sf_symbols_close(symbols);
	return !naming.failed;
}

bool sf_session_name_all(struct sf_recording *recording, struct sf_images *images,
			 struct sf_error *err)
{
	for (uint32_t number = 1; number <= sf_images_count(images); number++) {
		if (!name_image(recording, sf_images_get(images, number), err))
			return false;
	}
	return true;
}
