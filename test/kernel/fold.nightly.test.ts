// 1,000 random trees, folded from their records, and 200 that were tampered with.

import './fold.test.js';
