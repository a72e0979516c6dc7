// 400 random trees, decided by both interpreters.

import './oracle.test.js';
