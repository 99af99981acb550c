/* SPDX-License-Identifier: Apache-2.0 */
/* The hooks of clr_hooks_x86_64.S, for the runtime. */
#include "agent/coreclr/clr_hooks.h"

void sf_clr_enter_hook(void);
void sf_clr_leave_hook(void);

bool sf_clr_hooks(void **enter_ret, void **leave_ret)
{
	*enter_ret = (void *)sf_clr_enter_hook;
	*leave_ret = (void *)sf_clr_leave_hook;
	return true;
}
