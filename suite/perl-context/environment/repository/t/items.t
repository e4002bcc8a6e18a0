use strict;
use warnings;
use Test::More;
use Items qw(count);

is(count(), 0, "none");
done_testing();
