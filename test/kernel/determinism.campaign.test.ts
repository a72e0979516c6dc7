// The determinism of 200 random trees.

import './determinism.test.js';
