use strict;
use warnings;
use Test::More;
use Items qw(count);

is(count(), 0, "none");
is(count(5, 6, 7), 3, "three");
is(count(9), 1, "one");
done_testing();
