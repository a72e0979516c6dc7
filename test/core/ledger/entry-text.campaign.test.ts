// The entries of 200 random trees.

import './entry-text.test.js';
