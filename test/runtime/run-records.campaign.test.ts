// The records of 100 random trees.

import './run-records.test.js';
