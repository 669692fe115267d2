create table Customer (
  id bigint unsigned auto_increment primary key, email varchar(80) not null,
  unique key by_email (email)
);
create table `Order` (
  id bigint unsigned auto_increment primary key, customerId bigint unsigned not null, number int not null,
  total decimal(20, 4) not null default 0,
  unique key by_number (customerId, number),
  constraint customer_of_order foreign key (customerId) references Customer (id) on update cascade
);
create table Line (
  orderId bigint unsigned not null, place int not null, sku varchar(20) not null,
  primary key (orderId, place),
  constraint order_of_line foreign key (orderId) references `Order` (id) on delete cascade on update cascade
);
create table Sample (
  id int auto_increment primary key, flag bool, tiny tinyint, whole int, positive int unsigned, big bigint, bigger bigint unsigned,
  ratio double, price decimal(65, 30), year year, word varchar(191), text longtext, size enum('small', 'large'), json json,
  bytes longblob, uuid binary(16), bit bit(1), day date, clock time(3), at datetime(3), stamp timestamp(3) null
);
