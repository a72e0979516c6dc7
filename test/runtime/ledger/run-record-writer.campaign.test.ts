// The records of 100 random trees.

import './run-record-writer.test.js';
