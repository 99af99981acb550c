/* SPDX-License-Identifier: Apache-2.0 */
/* Readable names: C++, both Rust manglings, everything else as it is, and no end to hostility. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/cleanup.h"
#include "symbols/ilc_names.h"
#include "symbols/symbols.h"

static const struct {
	const char *mangled, *readable;
} names[] = {
	/* No name of C++ or Rust. */
	{ "main", "main" },
	{ "", "" },
	{ "_start", "_start" },
	{ "_Z", "_Z" },
	{ "_Zx", "_Zx" },
	{ "_R", "_R" },
	{ "_Reset", "_Reset" },
	{ "_RIC0", "_RIC0" }, /* of which libiberty prints a part that is nowhere */
	{ "foo.part.0", "foo.part.0" },
	{ "Java_com_example_Zoo_f", "Java_com_example_Zoo_f" },
	/* C++: template arguments stay, parameters and return types go. */
	{ "_Z3foov", "foo" },
	{ "_Z3fooIiEvT_", "foo<int>" },
	{ "_Z3foov.part.0", "foo" },
	{ "_ZN3FooC4Ev", "Foo::Foo" },
	{ "_ZN3FooD0Ev", "Foo::~Foo" },
	{ "_ZNK3FoocvbEv", "Foo::operator bool" },
	{ "_ZN3FooclEi", "Foo::operator()" },
	{ "_ZNSt6vectorIiSaIiEE9push_backERKi", "std::vector<int, std::allocator<int> >::push_back" },
	{ "_ZZ4mainENKUliE_clEi", "main::{lambda(int)#1}::operator()" },
	{ "_ZN12_GLOBAL__N_16hiddenEv", "(anonymous namespace)::hidden" },
	{ "_ZTV3Foo", "vtable for Foo" },
	{ "_ZThn16_N3Foo3runEi", "non-virtual thunk to Foo::run(int)" },
	{ "_ZNSt17_Function_handlerIFviEZ4mainEUliE_E9_M_invokeERKSt9_Any_dataOi",
	  "std::_Function_handler<void (int), main::{lambda(int)#1}>::_M_invoke" },
	/* Rust, the old way: the hash goes. */
	{ "_ZN4core3ptr13drop_in_place17h0123456789abcdefE", "core::ptr::drop_in_place" },
	{ "_ZN71_$LT$Test$u20$$u2b$$u20$$u27$static$u20$as$u20$foo..Bar$LT$Test$GT$$GT$3bar17h930b740aa94f1d3aE",
	  "<Test + 'static as foo::Bar<Test>>::bar" },
	{ "_ZN64_$LT$alloc..boxed..Box$LT$F$GT$$u20$as$u20$core..ops..FnOnce$GT$9call_once17h1234567890abcdefE",
	  "<alloc::boxed::Box<F> as core::ops::FnOnce>::call_once" },
	/* Rust, version 0. */
	{ "_RNvC6_123foo3bar", "123foo::bar" },
	{ "_RINvNtC3std3mem8align_ofNtNtC3std3mem12DiscriminantE",
	  "std::mem::align_of::<std::mem::Discriminant>" },
	{ "_RNCNCNgCs6DXkGYLi8lr_2cc5spawn00B5_", "cc::spawn::{closure#0}::{closure#0}" },
	{ "_RNvMsr_NtCs3ssYzQotkvD_3std4pathNtB5_7PathBuf3newCs15kBYyAo9fc_7mycrate",
	  "<std::path::PathBuf>::new" },
	/* OCaml */
	{ "camlStdlib__List__map_154", "Stdlib.List.map_154" },
	{ "camlMain__$3e$3e$3d_12", "Main.>>=_12" },
	{ "camlMain$", "Main$" },
	{ "caml_alloc_small", "caml_alloc_small" },
};

/* Of NativeAOT's compiler, in a program Demo.App. */
static const struct {
	const char *mangled, *readable;
} ilc_names[] = {
	{ "Demo_App_Demo_Work__Leaf", "Demo.Work.Leaf" },
	{ "Demo_App_Demo_Work__Leaf_12", "Demo.Work.Leaf" },
	{ "Demo_App_Demo_Work___ctor_0", "Demo.Work..ctor" },
	{ "Demo_App_Demo_Work___cctor", "Demo.Work..cctor" },
	{ "Demo_App_Demo_Work__get_Size", "Demo.Work.Size.get" },
	{ "Demo_App_Demo_Box_1_Inner<Int32>__Wait<System___Canon__Bool>", "Demo.Box<int>.Inner.Wait<__Canon, bool>" },
	/* Assemblies: the runtime's private ones, those of the class library, one whose name the namespace has. */
	{ "S_P_CoreLib_System_Threading_Thread__Sleep_0", "System.Threading.Thread.Sleep" },
	{ "S_P_Xml_Linq_System_Xml_Linq_XName__Get", "System.Xml.Linq.XName.Get" },
	{ "System_Console_System_ConsolePal__Read", "System.ConsolePal.Read" },
	{ "System_Console_Interop_Sys__Read", "Interop.Sys.Read" },
	{ "System_Console_Microsoft_Win32_SafeHandles_SafeTerminalHandle__Close", "Microsoft.Win32.SafeHandles.SafeTerminalHandle.Close" },
	{ "Newtonsoft_Json_Newtonsoft_Json_Linq_JToken__Parse", "Newtonsoft.Json.Linq.JToken.Parse" },
	{ "Other_Space_Type__Run", "Other.Space.Type.Run" },
	{ "String__Concat_7", "System.String.Concat" },
	{ "UInt8__TryFormat", "System.Byte.TryFormat" },
	/* Arguments belong to the names that say how many they add. */
	{ "S_P_CoreLib_System_Collections_Generic_Dictionary_2_Entry<System___Canon__System_Console_System_ConsoleKeyInfo>____GetFieldHelper",
	  "System.Collections.Generic.Dictionary<__Canon, System.ConsoleKeyInfo>.Entry.__GetFieldHelper" },
	{ "S_P_CoreLib_System_Array__Sort<__Array<Int32>__UInt8<Pointer>__Char<ByRef>__S_P_CoreLib_System_Span_1<__MDArray<Object,2>>>",
	  "System.Array.Sort<int[], byte*, ref char, System.Span<object[,]>>" },
	/* Names that the C# compiler makes. */
	{ "Demo_App_Demo_Work__Later_d__16__MoveNext", "Demo.Work.Later" },
	{ "Demo_App_Demo_Work__Very_long_name_d__16_1<Int32>__MoveNext", "Demo.Work.Very_long_name<int>" },
	{ "Demo_App_Demo_Work__Numbers_d__14__Dispose", "Demo.Work.Numbers.Dispose" },
	{ "Demo_App_Demo_Work___c___Main_b__24_1", "Demo.Work.Main.lambda#1" },
	{ "Demo_App_Demo_Work___c__DisplayClass23_0___Start_b__0", "Demo.Work.Start.lambda#0" },
	{ "Demo_App_Demo_Work___Start_g__Local_23_0", "Demo.Work.Start.Local" },
	{ "Demo_App__Module___StartupCodeMain", "Module.StartupCodeMain" },
	/* Stubs have the names of what they call. */
	{ "unbox_S_P_CoreLib_System_Nullable_1<S_P_CoreLib_System_TimeSpan>__Equals", "System.Nullable<System.TimeSpan>.Equals" },
	{ "<Boxed>S_P_CoreLib_System_Span_1<System___Canon>__<unbox>S_P_CoreLib_System_Span_1__ToString",
	  "System.Span<__Canon>.ToString" },
	/* No names of methods. */
	{ "OnFirstChanceException", "OnFirstChanceException" },
	{ "__unbox_start", "__unbox_start" },
	{ "Demo_App_Demo_Work__", "Demo_App_Demo_Work__" },
	{ "", "" },
	{ "__", "__" },
	{ "a__b<", "a.b" },
};

static void names_by_ilc(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(ilc_names) / sizeof(*ilc_names); i++) {
		SF_CLEANUP(free) char *readable = sf_ilc_name(ilc_names[i].mangled, "Demo.App");

		assert_non_null(readable);
		assert_string_equal(readable, ilc_names[i].readable);
	}
}

static void known_names(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		SF_CLEANUP(free) char *readable = sf_demangle(names[i].mangled);

		assert_non_null(readable);
		assert_string_equal(readable, names[i].readable);
	}
}

/* prefix, then `part` n times, then suffix. */
static char *repeat(const char *prefix, const char *part, size_t n, const char *suffix)
{
	size_t size = strlen(prefix) + n * strlen(part) + strlen(suffix) + 1;
	char *text = malloc(size), *end = text;

	assert_non_null(text);
	end = stpcpy(end, prefix);
	while (n--)
		end = stpcpy(end, part);
	strcpy(end, suffix);
	return text;
}

/* Names that describe themselves by their parts: forty doublings would be a terabyte. */
static void bombs_stay_as_they_are(void **state)
{
	char bomb[2048] = "_Z1fI1pIiiE";
	size_t used = strlen(bomb);
	SF_CLEANUP(free) char *readable = NULL;
	(void)state;

	for (unsigned i = 0; i < 30; i++) {
		char number[4];

		snprintf(number, sizeof(number), "%c", i < 10 ? (int)('0' + i) : (int)('A' + i - 10));
		used += (size_t)snprintf(bomb + used, sizeof(bomb) - used, "S_IS%s_S%s_E", number,
					 number);
	}
	snprintf(bomb + used, sizeof(bomb) - used, "Evv");
	readable = sf_demangle(bomb);
	assert_non_null(readable);
	assert_true(strlen(readable) < 65536);
}

/* Deep nesting must not use the stack up. */
static void deep_names_come_back(void **state)
{
	static const char *const shapes[][3] = {
		{ "_Z1f", "P", "i" },	{ "_Z1f", "1AI", "iE" },    { "_ZN", "1a", "E" },
		{ "_Z1f", "F", "vvE" }, { "_RINvC1a1b", "R", "uE" }, { "_RNvC1a1b", "NvC1a", "1b" },
		{ "_Z", "Z", "1fvE1x" }, { "_Z1fIX", "pl", "EEvv" },
	};
	(void)state;

	for (size_t i = 0; i < sizeof(shapes) / sizeof(*shapes); i++) {
		for (size_t n = 10; n <= 100000; n *= 10) {
			SF_CLEANUP(free) char *name =
				repeat(shapes[i][0], shapes[i][1], n, shapes[i][2]);
			SF_CLEANUP(free) char *readable = sf_demangle(name);

			assert_non_null(readable);
		}
	}
	for (size_t n = 10; n <= 100000; n *= 10) {
		SF_CLEANUP(free) char *name = repeat("A__B", "<A_1", n, "");
		SF_CLEANUP(free) char *readable = sf_ilc_name(name, "");

		assert_non_null(readable);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(known_names),
		cmocka_unit_test(names_by_ilc),
		cmocka_unit_test(bombs_stay_as_they_are),
		cmocka_unit_test(deep_names_come_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
