// Looks up everything far more often while the indexes catch up.

import './sqlite-index.test.js';
