// More random changes of a bundle.

import './hostile-bundle.test.js';
