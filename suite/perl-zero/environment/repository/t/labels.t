use strict;
use warnings;
use Test::More;
use Labels qw(label);

is(label("a"), "a", "name");
is(label(""), "unknown", "empty");
done_testing();
