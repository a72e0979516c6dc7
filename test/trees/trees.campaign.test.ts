// 300 random trees.

import './trees.test.js';
