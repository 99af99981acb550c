/* SPDX-License-Identifier: Apache-2.0 */
/* Loading what a view is to show: a recording, named where it was cut short, or a stream. */
#include "base/cleanup.h"
#include "session/import.h"
#include "session/naming.h"
#include "session/session.h"
#include "stream/file.h"

static bool load_recording(const char *path, struct sf_profile **ret, struct sf_error *err)
{
	struct sf_lookup lookup = sf_lookup_begin(NULL);
	const struct sf_profile_namer namer = sf_session_namer(&lookup);

	return sf_profile_load_named(path, &namer, ret, err);
}

/* A device or a FIFO is not even opened. */
bool sf_session_load(const char *path, struct sf_profile **ret, struct sf_error *err)
{
	SF_CLEANUP(close) int fd = -1;

	if (!sf_stream_find(path, &fd, err))
		return false;
	if (sf_stream_is(fd))
		return sf_import_load(fd, path, ret, err);
	return load_recording(path, ret, err);
}
