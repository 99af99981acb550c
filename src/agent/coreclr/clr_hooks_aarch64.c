/* SPDX-License-Identifier: Apache-2.0 */
/* No hooks are written for aarch64. */
#include <stddef.h>

#include "agent/coreclr/clr_hooks.h"

bool sf_clr_hooks(void **enter_ret, void **leave_ret)
{
	*enter_ret = *leave_ret = NULL;
	return false;
}
