// The events of 300 random trees.

import './audit.test.js';
