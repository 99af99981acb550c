/* SPDX-License-Identifier: Apache-2.0 */
/* A shared library that dlopen_loop and plt_lazy load and unload; all its calls are bound lazily. */
#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

__attribute__((visibility("default"))) int plugin_work(int turns);

/* Each first call of these goes through the dynamic linker's resolver. */
int plugin_work(int turns)
{
	volatile int sum = 0;
	char text[64] = "some text";
	char *end;

	sum += abs(turns) + labs(turns) + atoi("12") + atol("34");
	sum += strlen(text) + strcspn(text, "t") + strspn(text, "so") + strcasecmp(text, "SOME");
	sum += toupper(text[0]) + tolower(text[1]) + strtol("77", &end, 10) + strtoul("78", &end, 10);
	sum += strncasecmp(text, "so", 2) + memcmp(text, "so", 2) + strcmp(text, "b") + ffs(turns);
	sum += strcoll(text, "c") + (strpbrk(text, "x") != NULL) + (strstr(text, "me") != NULL);
	sum += (strrchr(text, 'e') != NULL) + (memchr(text, 'q', 9) != NULL) + rand() % 3;
	sum += (int)time(NULL) % 2 + (int)(clock() % 2) + (getenv("NOWHERE") != NULL);
	for (int i = 0; i < turns; i++)
		sum++;
	return sum;
}
