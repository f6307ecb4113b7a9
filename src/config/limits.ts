// Bounds and defaults of the adapter format that more than one file goes by.

/** Upstream calls under way at once, when an adapter does not say. */
export const defaultConcurrency = 8;

/** Most bytes of a value that an expression gives, and of a result, when an adapter does not say. */
export const defaultValueBytes = 256 * 1024;

/** Most bytes of a reply or a result that an adapter may ask for. */
export const largestBytes = 16 * 1024 * 1024;

/** Longest name of a tool, its prefix included. */
export const longestToolName = 64;

/** Longer names are warned of: many clients put the name of their server before them, and cut or refuse what is long. */
export const longToolName = 40;
