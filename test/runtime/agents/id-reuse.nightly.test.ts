// All rounds of id-reuse.test.ts.

import './id-reuse.test.js';
