// The in-memory store keeps the store contract.

import { createMemoryStore } from '../../src/stores/memory.ts';
import { describeStore } from '../contracts/store-contract.ts';

describeStore('the in-memory store', { open: async () => createMemoryStore(), outlivesClose: false });
