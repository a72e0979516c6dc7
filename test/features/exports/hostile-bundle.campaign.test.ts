// More random changes of a bag.

import './hostile-bundle.test.js';
