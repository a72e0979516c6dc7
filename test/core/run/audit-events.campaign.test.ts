// The events of 300 random trees.

import './audit-events.test.js';
