/* SPDX-License-Identifier: Apache-2.0 */
/* Which sanitizer the test is compiled with: gcc and clang say it in different ways. */
#ifndef SF_TEST_SANITIZER_H
#define SF_TEST_SANITIZER_H

#ifdef __has_feature
#define SF_HAS_FEATURE(name) __has_feature(name)
#else
#define SF_HAS_FEATURE(name) 0
#endif

#if defined(__SANITIZE_ADDRESS__) || SF_HAS_FEATURE(address_sanitizer)
#define IS_ADDRESS_SANITIZER 1
#else
#define IS_ADDRESS_SANITIZER 0
#endif

#if defined(__SANITIZE_THREAD__) || SF_HAS_FEATURE(thread_sanitizer)
#define IS_THREAD_SANITIZER 1
#else
#define IS_THREAD_SANITIZER 0
#endif

#endif
