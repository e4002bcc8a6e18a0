int is_leap_year(int year);
