use strict;
use warnings;
use Test::More;
use Domains qw(is_ours);

is(is_ours("a.org", "a.org"), 1, "same");
is(is_ours("b.org", "a.org"), 0, "other");
is(is_ours("mailXexample.org", "mail.example.org"), 0, "dot");
done_testing();
