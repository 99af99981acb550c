/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names addresses without DWARF by symbols, stubs and function starts.
 *
 * Symbols of assembly often have no size, and in a stripped library the last one before an address
 * may be megabytes away. So a symbol without a size counts only as far as no other
 * function is known to begin.
 */
#include "symbols/address_names.h"

#include "elf/debug_file.h"

static bool need_symbols(struct sf_address_names *names, struct sf_elf *image,
			 const struct sf_elf *debug)
{
	struct sf_elf_symbols *table = &names->symbols;
	size_t n_sections = 0;

	if (names->has_symbols)
		return true;
	elf_getshdrnum(image->elf, &n_sections);
	if (n_sections ? !sf_elf_symbols_add(table, image)
		       : !sf_elf_symbols_add_dynamic(table, image))
		return false;
	if (debug->elf && !sf_elf_symbols_add(table, debug))
		return false;
	if (sf_debug_data_open(image, &names->packed) &&
	    !sf_elf_symbols_add(table, &names->packed))
		return false;
	names->has_symbols = sf_elf_symbols_finish(table);
	return names->has_symbols;
}

static bool need_functions(struct sf_address_names *names, struct sf_elf *image)
{
	if (names->has_functions)
		return true;
	names->has_functions = sf_plt_names_read(image, &names->plt) &&
			       sf_function_ranges_read(image, &names->functions);
	return names->has_functions;
}

bool sf_address_names_find(struct sf_address_names *names, struct sf_elf *image,
			   const struct sf_elf *debug, uint64_t address,
			   struct sf_address_name *ret)
{
	const struct sf_function_range *function;
	const struct sf_elf_symbol *symbol;
	const char *called;

	if (!need_symbols(names, image, debug))
		return false;
	symbol = sf_elf_symbols_find(&names->symbols, address);
	*ret = (struct sf_address_name){ .symbol = symbol ? symbol->name : NULL };
	if (symbol && sf_elf_symbol_is_sized(symbol))
		return true;
	if (!need_functions(names, image))
		return false;
	called = sf_plt_names_find(&names->plt, address);
	function = sf_function_ranges_find(&names->functions, address);
	if (called)
		*ret = (struct sf_address_name){ .symbol = called, .is_plt = true };
	else if (function && (!symbol || function->start > symbol->start))
		*ret = (struct sf_address_name){ .start = function->start };
	return true;
}

void sf_address_names_deinit(struct sf_address_names *names)
{
	sf_elf_symbols_deinit(&names->symbols);
	sf_plt_names_deinit(&names->plt);
	sf_function_ranges_deinit(&names->functions);
	sf_elf_close(&names->packed);
}
