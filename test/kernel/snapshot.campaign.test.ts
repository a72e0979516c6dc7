// 300 random trees, restored from a snapshot after every input.

import './snapshot.test.js';
