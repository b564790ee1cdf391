/** The items by key, keys and items in the order in which they came. (Map.groupBy, which Node.js 20 has not.) */
export function grouped<Key, Item>(items: Iterable<Item>, keyOf: (item: Item) => Key): Map<Key, Item[]> {
  const found = new Map<Key, Item[]>();
  for (const item of items) {
    const key = keyOf(item);
    const known = found.get(key);
    if (known === undefined) found.set(key, [item]);
    else known.push(item);
  }
  return found;
}
