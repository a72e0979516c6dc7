// More governed trees, decided by both interpreters.

import './governed.test.js';
