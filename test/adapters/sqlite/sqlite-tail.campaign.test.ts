// Everything is looked up far more often while indexes catch up.

import './sqlite-tail.test.js';
