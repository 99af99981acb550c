/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The agent's code that a forked child of a sampled program runs, and the agent's data that it changes, before fork()
 * returns there. A child's first look at a page of code is a page fault, and so is its first change of a page of data,
 * which is copied then. So this code stands together, and so does this data: in one page each, where they fit.
 */
#ifndef SF_FROZEN_CHILD_H
#define SF_FROZEN_CHILD_H

#define SF_CHILD_CODE __attribute__((section(".text.hot.sf_child"))) /* beside the PLT: linkers put ".text.hot" in front */
#define SF_CHILD_DATA __attribute__((section("sf_child")))           /* behind ".data" */

#endif
