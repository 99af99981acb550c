/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads the methods that reflection finds: they are not in the stack-trace map.
 *
 * The invoke map is a hash table (NativeFormatReader.cs: NativeHashtable). An entry has flags, the offset of the method's
 * record, and the numbers of two references, to its type's MethodTable and to its code (ReflectionInvokeMapNode.cs). Equal
 * methods of several types have one record. So the type comes from the type map, which has those that are not generic;
 * else it is the only type that has the record.
 */
#include "symbols/ilc_methods.h"

#include <stdlib.h>

#include "base/search.h"

#define HAS_CODE 0x20u               /* flag of an entry: MappingTableFlags.cs, InvokeTableFlags.HasEntrypoint */
#define MAX_ENTRIES ((size_t)1 << 20) /* of a table */
#define MAX_DEPTH 64u                /* of namespaces in namespaces, types in types */
#define AFTER_SIGNATURE 4u           /* the list of assemblies, in the metadata */

/* A key, and the type that it leads to. */
struct link {
	uint32_t key;
	struct sf_ilc_handle type;
};

struct search {
	struct sf_ilc_methods *methods;
	SF_VEC(struct link) types;   /* by the number of a reference */
	SF_VEC(struct link) owners;  /* by the offset of a method's record */
	size_t work_left;            /* bytes to go through: once is enough, but records may refer to each other in circles */
	bool no_memory;
};

/* Takes an entry of a hash table. */
typedef void entry_fn(struct search *search, struct sf_bytes entry);

/* The start of bucket `i`, in bytes behind the header. */
static uint64_t bucket(const struct sf_section *table, unsigned size_code, uint32_t i)
{
	const size_t size = (size_t)1 << size_code;
	struct sf_bytes bytes = sf_ilc_at(table, 1 + (uint64_t)i * size);

	return sf_bytes_number(&bytes, size);
}

/* The entries of a bucket: a byte of the hash, and where the entry is, relative to that number. */
static void read_bucket(struct search *search, const struct sf_section *table, uint64_t start, uint64_t end, entry_fn *take,
			size_t *left)
{
	struct sf_bytes bytes = sf_ilc_at(table, 1 + start);

	while (!bytes.bad && (uint64_t)(bytes.at - table->bytes) < 1 + end && *left) {
		uint64_t at;

		sf_bytes_u8(&bytes);
		at = (uint64_t)(bytes.at - table->bytes);
		at += (uint64_t)(int64_t)sf_ilc_signed_number(&bytes);
		if (!bytes.bad && at < table->size)
			take(search, sf_ilc_at(table, at));
		(*left)--;
	}
}

/* Goes through a hash table. Its first byte has the number of buckets, as a power of two, and the size of their starts. */
static void read_table(struct search *search, enum sf_ilc_table number, entry_fn *take)
{
	const struct sf_section *table = &search->methods->module.tables[number];
	struct sf_bytes bytes = sf_ilc_at(table, 0);
	const uint8_t header = table->size ? sf_bytes_u8(&bytes) : 0xff;
	const unsigned bits = header >> 2, size_code = header & 3;
	size_t left = MAX_ENTRIES;

	if (bits > 31 || size_code > 2 || ((UINT64_C(1) << bits) + 1) << size_code > sf_bytes_left(&bytes))
		return;
	for (uint32_t i = 0; i < UINT64_C(1) << bits && left; i++)
		read_bucket(search, table, bucket(table, size_code, i), bucket(table, size_code, i + 1), take, &left);
}

static int by_key(const void *a_arg, const void *b_arg)
{
	const struct link *a = a_arg, *b = b_arg;

	return a->key != b->key ? sf_order(a->key, b->key) : sf_order(a->type.offset, b->type.offset);
}

/* The only type that `key` leads to; false: there is none, or several. */
static bool find_only(const struct link *links, size_t n, uint32_t key, struct sf_ilc_handle *ret)
{
	const size_t low = sf_count_before(n, i, links[i].key < key);

	if (low == n || links[low].key != key || (low + 1 < n && links[low + 1].key == key && by_key(&links[low], &links[low + 1])))
		return false;
	*ret = links[low].type;
	return true;
}

/* False: too much was gone through. */
static bool spend(struct search *search, size_t bytes)
{
	search->work_left -= bytes < search->work_left ? bytes : search->work_left;
	return search->work_left != 0;
}

/* An entry of the type map: the number of a reference, and a handle. */
static void add_type(struct search *search, struct sf_bytes entry)
{
	const uint32_t number = sf_ilc_number(&entry), handle = sf_ilc_number(&entry);

	if (!entry.bad && !sf_vec_push(&search->types, (struct link){ number, sf_ilc_handle_of(&search->methods->metadata, handle) }))
		search->no_memory = true;
}

static void add_owners(struct search *search, uint32_t type, unsigned depth)
{
	const struct sf_ilc_handle owner = { SF_ILC_TYPE_DEFINITION, type };
	struct sf_ilc_type_definition definition;
	const bool good = sf_ilc_type_definition(&search->methods->metadata, type, &definition);

	if (!spend(search, definition.size) || !depth || !good)
		return;
	for (uint32_t n = sf_ilc_list(&definition.methods); n && search->owners.n < MAX_ENTRIES; n--) {
		if (!sf_vec_push(&search->owners, (struct link){ sf_ilc_number(&definition.methods), owner }))
			search->no_memory = true;
	}
	for (uint32_t n = sf_ilc_list(&definition.nested); n && spend(search, 1); n--)
		add_owners(search, sf_ilc_number(&definition.nested), depth - 1);
}

/* A namespace: its parent, name, types, forwarders of types, namespaces. */
static void add_owners_in(struct search *search, uint32_t name_space, unsigned depth)
{
	struct sf_bytes bytes = sf_ilc_at(&search->methods->metadata.bytes, name_space);
	const uint8_t *start = bytes.at;

	if (!depth)
		return;
	sf_ilc_number(&bytes);
	sf_ilc_number(&bytes);
	for (uint32_t n = sf_ilc_list(&bytes); n && spend(search, 1); n--)
		add_owners(search, sf_ilc_number(&bytes), depth - 1);
	sf_ilc_skip_list(&bytes);
	if (!spend(search, (size_t)(bytes.at - start)))
		return;
	for (uint32_t n = sf_ilc_list(&bytes); n && spend(search, 1); n--)
		add_owners_in(search, sf_ilc_number(&bytes), depth - 1);
}

/* An assembly: flags, name, algorithm, four numbers of its version, key, culture, its outermost namespace. */
static void add_owners_of(struct search *search, uint32_t assembly)
{
	struct sf_bytes bytes = sf_ilc_at(&search->methods->metadata.bytes, assembly);

	for (unsigned i = 0; i < 7; i++)
		sf_ilc_number(&bytes);
	sf_bytes_take(&bytes, sf_ilc_number(&bytes));
	sf_ilc_number(&bytes);
	add_owners_in(search, sf_ilc_number(&bytes), MAX_DEPTH);
}

static void find_owners(struct search *search)
{
	struct sf_bytes bytes = sf_ilc_at(&search->methods->metadata.bytes, AFTER_SIGNATURE);

	for (uint32_t n = sf_ilc_list(&bytes); n && spend(search, 1); n--)
		add_owners_of(search, sf_ilc_number(&bytes));
}

/* The address that reference `number` has, relative to its own place. */
static bool read_reference(const struct search *search, uint32_t number, uint64_t *ret)
{
	const struct sf_section *table = &search->methods->module.tables[SF_ILC_REFERENCES];
	struct sf_bytes bytes = sf_ilc_at(table, (uint64_t)number * 4);

	*ret = table->address + (uint64_t)number * 4 + (uint64_t)(int64_t)(int32_t)sf_bytes_u32(&bytes);
	return !bytes.bad;
}

static void add_invoked(struct search *search, struct sf_bytes entry)
{
	const uint32_t flags = sf_ilc_number(&entry), record = sf_ilc_number(&entry), type = sf_ilc_number(&entry);
	const uint32_t code = flags & HAS_CODE ? sf_ilc_number(&entry) : 0;
	struct sf_ilc_method method = { .record = record };

	if (entry.bad || !record || !(flags & HAS_CODE) || !read_reference(search, code, &method.start) ||
	    !sf_ilc_is_code(&search->methods->module, method.start))
		return;
	if (!find_only(search->types.items, search->types.n, type, &method.owner) &&
	    !find_only(search->owners.items, search->owners.n, record, &method.owner))
		return;
	if (!sf_vec_push(&search->methods->items, method))
		search->no_memory = true;
}

static void sort(struct link *links, size_t n)
{
	if (n)
		qsort(links, n, sizeof(*links), by_key);
}

bool sf_ilc_methods_add_invoked(struct sf_ilc_methods *methods)
{
	struct search search = { .methods = methods, .work_left = 2 * methods->module.tables[SF_ILC_METADATA].size };

	read_table(&search, SF_ILC_TYPE_MAP, add_type);
	find_owners(&search);
	sort(search.types.items, search.types.n);
	sort(search.owners.items, search.owners.n);
	read_table(&search, SF_ILC_INVOKE_MAP, add_invoked);
	sf_vec_deinit(&search.types);
	sf_vec_deinit(&search.owners);
	return !search.no_memory;
}
